"""Requests and futures of operations, which report waits, and the buffers of collectives."""

from __future__ import annotations

import _thread
import functools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import FrameType
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch.futures import Future as TorchFuture
from torch.nn.parallel import DistributedDataParallel

from headcount.core.events import ANY
from headcount.core.values import tensors_in
from headcount.rank.recorder import Recorder, checksum

__all__ = [
    "Batched",
    "Deferred",
    "Future",
    "Gated",
    "PrivateBuffers",
    "Request",
    "TransportError",
    "WaitExpired",
    "collect_all",
    "hand_over",
    "milliseconds",
    "report_comm_hooks",
    "settle_later",
    "wait_all",
]


class TransportError(RuntimeError):
    """The transport failed: a peer died, or the connection broke.

    A class of its own, so that the judge can tell the effect of a failure from its cause.
    """

    def __reduce__(self) -> tuple[type[RuntimeError], tuple[object, ...]]:
        # torch sends exceptions between ranks, and this class is not found by the name it has
        return RuntimeError, self.args


class WaitExpired(TransportError):
    """A wait ended at its own time limit, which is no effect of another rank's failure."""


# a program prints the name that torch's own error has, in a traceback or by itself
for _error in (TransportError, WaitExpired):
    _error.__module__, _error.__name__ = RuntimeError.__module__, RuntimeError.__name__
    _error.__qualname__ = RuntimeError.__qualname__


class _NotYet(RuntimeError):
    """A time limit ended before the operation was handed to the transport."""


def milliseconds(limit: timedelta | None) -> int:
    """Return a time limit in milliseconds, at least 1; 0 means none, as it does in torch."""
    if limit is None or limit <= timedelta(0):
        return 0
    return max(1, round(limit.total_seconds() * 1000))


def hand_over(recorder: Recorder, op: int, start: Callable[[], Any]) -> Any:
    """Start an operation that has been reported, and return the transport's request.

    Raises:
        TransportError: the transport has lost the peer, or refuses the operation.
    """
    try:
        return start()
    except RuntimeError as error:
        recorder.refused(op)
        raise TransportError(str(error)) from None  # it says all that the error has said
    except Exception:
        recorder.refused(op)
        raise


# Private buffers: a collective in flight works on copies. --------------------------

# So a mistake shows every time: a program that reads too early reads the old contents, and one
# that writes too early is found, since the original is no longer as it was.


class PrivateBuffers:
    """Copies of the tensors that a collective is called with.

    Args:
        args: the method's arguments, of which the first two have tensors.
        written: those of them that it writes to.
    """

    def __init__(self, args: tuple[Any, ...], written: Sequence[torch.Tensor]) -> None:
        self._mine: dict[int, torch.Tensor] = {}
        self._given = tensors_in(args[:2])
        self._written = written
        self._before = [_sum(tensor) for tensor in self._given]
        self._writes, self._raced = self._count_writes(), False
        #: the arguments with the copies in their place
        self.args = (*map(self._copied, args[:2]), *args[2:])

    @staticmethod
    def possible(args: tuple[Any, ...]) -> bool:
        """Return whether there are tensors, all of them strided, so that copies can be made."""
        found = tensors_in(args[:2])
        return bool(found) and all(t.layout is torch.strided for t in found)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._mine:
                self._mine[id(value)] = value.detach().clone()
            return self._mine[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(self._copied(item) for item in value)
        return value

    def changed(self) -> bool:
        """Return whether the originals have changed."""
        self._writes = self._count_writes()
        return self._raced or [_sum(tensor) for tensor in self._given] != self._before

    def remember(self) -> None:
        """Compare the originals with their present contents from now on."""
        self._before = [_sum(tensor) for tensor in self._given]
        # the program may have written to them since it was last seen that it had not
        self._raced = self._writes != self._count_writes()

    def _count_writes(self) -> list[int]:
        """Return how often the program has written to each original."""
        return [0 if tensor.is_inference() else tensor._version for tensor in self._given]

    def originals(self, value: Any) -> Any:
        """Return a value of the transport's with its copies replaced by the originals."""
        mine = {copy.data_ptr(): copy for copy in self._mine.values() if copy.nbytes}
        by_copy = {self._mine[id(tensor)].data_ptr(): tensor for tensor in self._given}

        def original(one: Any) -> Any:
            if isinstance(one, torch.Tensor):
                copy = mine.get(one.data_ptr())
                same = copy is not None and (copy.shape, copy.dtype) == (one.shape, one.dtype)
                return by_copy[one.data_ptr()] if same else one
            if isinstance(one, (list, tuple)):
                return type(one)(original(item) for item in one)
            return one

        return original(value)

    def deliver(self) -> None:
        """Copy what the collective wrote to the originals."""
        for tensor in self._written:
            # past autograd, as the transport itself would write
            tensor.data.copy_(self._mine[id(tensor)])


def _sum(tensor: torch.Tensor) -> int:
    return checksum(tensor.detach().contiguous())


# Requests. -------------------------------------------------------------------------


_CPU = torch.device("cpu")


class Request(dist.Work):
    """The request that ``isend``, ``irecv`` and collectives return; its waits are reported.

    A second ``wait`` returns at once (gloo's own would hang), and
    ``is_completed`` is right without a wait (gloo's own stays false).

    Args:
        recorder: the rank's recorder.
        op: the operation's number.
        inner: the transport's request, or a :class:`Deferred` receive.
        source: for a receive, the rank in the group that it comes from.
        verify: called when the wait begins, to check the buffers while they are in flight.
        finish: called when the operation is complete.
        private: the private buffers of a collective that works on copies.
        limit: milliseconds after which waits of the group give up; 0 means never.
        lasting: whether the operation is still in flight when a wait for it gives up, as a
            collective of gloo's is; a message's connection is closed then.
        device: the device of its tensors; the CPU by default.
    """

    _complete = False
    _poller: threading.Thread | None = None
    _future: Future | None = None
    _error: TransportError | None = None

    def __init__(
        self,
        recorder: Recorder,
        op: int,
        inner: Any,
        source: int = ANY,
        verify: Callable[[], None] | None = None,
        finish: Callable[[], None] | None = None,
        private: PrivateBuffers | None = None,
        limit: int = 0,
        lasting: bool = False,
        device: torch.device | None = None,
    ) -> None:
        super().__init__()
        self._recorder = recorder
        self._op = op
        self._inner = inner
        self._source = source
        self._verify = self._check = verify
        self._finish = finish
        self._private = private
        self._limit = limit
        self._lasting = lasting
        self.device = device or _CPU
        # one thread at a time waits in the transport; the first to see the end settles
        self._turn, self._settling = _thread.allocate_lock(), _thread.allocate_lock()
        recorder.hold(op, self)

    @property
    def op(self) -> int:
        """The operation's number."""
        return self._op

    @property
    def recorder(self) -> Recorder:
        """The rank's recorder."""
        return self._recorder

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Block until the operation is complete.

        Raises:
            TransportError: the operation failed, or ``timeout`` ended first.
        """
        if self._complete:
            self.observe()
            return True
        limit = self._limit if timeout is None else milliseconds(timeout) or self._limit
        self._recorder.blocked(self._op, limit)
        try:
            self._begin()
            self._take_turn(limit)
            self._settle()
            self.observe()
        finally:
            self._recorder.resumed()
        return True

    def _begin(self) -> None:
        """Check the buffers once, when the student's code first asks for completion."""
        with self._settling:  # a callback of the transport may be about to write to them
            self._check_buffers()

    def _check_buffers(self) -> None:
        verify, self._verify = self._verify, None
        if verify is not None:
            verify()

    def _take_turn(self, limit: int) -> None:
        """Wait in the transport, after other threads that wait there."""
        seconds, began = (limit / 1000, time.monotonic()) if limit else (-1, 0.0)
        if not self._turn.acquire(timeout=seconds):
            self._expire(limit, broken=False)
        try:
            if self._complete or self._error is not None:
                return
            if self._poller is not None:
                self._poller.join(seconds if limit else None)
                if self._poller.is_alive():
                    self._expire(limit, broken=False)
                return
            try:
                self._inner.wait(*((timedelta(milliseconds=limit),) if limit else ()))
            except _NotYet:
                self._expire(limit, broken=False)
            except RuntimeError as error:
                if limit and time.monotonic() - began >= seconds:
                    self._expire(limit, broken=not self._lasting, why=str(error))
                self._error = TransportError(str(error))
        finally:
            self._turn.release()

    def _expire(self, limit: int, *, broken: bool, why: str = "") -> NoReturn:
        """Give up waiting at the time limit that the student's code has set."""
        error = WaitExpired(why or f"Timed out waiting {limit}ms for the operation to complete")
        if broken:
            self._error = error
            self._recorder.failed(self._op)
        else:
            self._recorder.expired(self._op)
        raise error

    def _poll_inner(self) -> None:
        try:
            self._inner.wait()
        except RuntimeError as error:
            self._error = TransportError(str(error))

    def _settle(self, *, asked: bool = True) -> None:
        """Record that the operation is complete, or raise the error with which it failed.

        ``asked`` says whether the program asks for completion, and may use the buffers from now on.
        """
        with self._settling:
            if self._error is not None:
                if self._recorder.in_flight(self._op):
                    self._recorder.failed(self._op)
                raise self._error
            if not self._complete:
                self._check_buffers()
                if self._finish is not None:
                    self._finish()
                if not asked and self._private is not None:
                    self._private.remember()
                    self._verify = self._check
                self._complete = True
                self._recorder.done(self._op)
                if self._private is None:  # the buffer is the program's again, and may go
                    self._verify = self._check = self._finish = None

    def is_completed(self) -> bool:
        """Return whether the operation is complete, without blocking."""
        if not self._complete:
            self._begin()
            if self._poller is None:
                # gloo's point-to-point requests learn that they are done only
                # inside wait(), so something has to wait for them
                self._poller = threading.Thread(target=self._poll_inner, daemon=True)
                self._recorder.helpers.add(self._poller)
                self._poller.start()
            self._poller.join(timeout=1e-4)
            if self._poller.is_alive():
                self._recorder.polled(self._op)
            else:
                self._settle()
        self.observe()
        return self._complete

    def is_success(self) -> bool:
        """Return whether the operation completed."""
        return self._complete

    def source_rank(self) -> int:
        """Return the rank in the group that the message came from."""
        return int(self._inner.source) if isinstance(self._inner, Deferred) else self._source

    _source_rank = source_rank

    def get_future(self) -> Future:
        """Return a future; waits for it are reported as waits for the operation."""
        if self._future is None:
            self._future = Future([self])
            settle_later(self._inner.get_future(), self._future, self._settled, self._lost)
        if _called_by_engine(sys._getframe()):
            _wait_when_backward_ends(self.await_future)
        return self._future

    def _settled(self, value: Any) -> Any:
        """Settle the request after the transport's future, and return the value of ours."""
        self._settle(asked=False)
        return value if self._private is None else self._private.originals(value)

    def _lost(self, error: Exception) -> TransportError:
        """Record the failure of the transport's future, and return the error of ours."""
        self._error = TransportError(str(error))
        with self._settling:
            if self._recorder.in_flight(self._op):
                self._recorder.failed(self._op)
        return self._error

    def await_future(self) -> None:
        """Block until the future of this operation is complete."""
        if self._future is None or self._future.complete:
            return
        self._recorder.blocked(self._op, self._limit)
        try:
            self._begin()
            self._future.block()
        finally:
            self._recorder.resumed()

    def observe(self) -> None:
        """Check the buffers when the program learns that the operation is complete."""
        if self._complete:
            self._begin()

    def result(self) -> list[torch.Tensor]:
        """Return the tensors of a finished collective."""
        return list(self._inner.result())


# What a request holds in place of one of the transport's. --------------------------


class Gated:
    """A collective that is handed to the transport only when all members have called it.

    By then the calls have been compared: gloo aborts the process, or misreads, if ranks
    disagree on a size or a type.  Besides, gloo lets some ranks leave a broadcast before others
    have called it; MPI allows that, and allows the opposite.  A program that works only in one
    of the two is wrong, and fails every time if no rank leaves early.

    Args:
        start: hands the collective to the transport, and returns its request.
    """

    #: no receive must queue behind it
    channel = None

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._inner: Any = None
        self._error: Exception | None = None
        self._shut = _thread.allocate_lock()
        self._shut.acquire()
        #: is complete when there is a request, or an error
        self._started: torch.futures.Future[Any] = torch.futures.Future()

    def resolve(self, _: int) -> None:
        """Start the collective, which all members have called with matching arguments."""
        try:
            with torch.no_grad():  # as C++ would; the mode of this thread is not the caller's
                self._inner = self._start()
        except Exception as error:
            self._error = error  # raised in the waiting thread; this one has others to serve
        finally:
            self._shut.release()

    def run_callbacks(self) -> None:
        """Let the futures of the collective follow the transport's, now that it has started."""
        self._started.set_result(None)

    def _request(self) -> Any:
        """Return the transport's request, or raise the error of the start."""
        if self._error is not None:
            raise self._error
        return self._inner

    def wait(self, *timeout: timedelta) -> None:
        """Block until all members have called and the transport is done."""
        left = _left(self._shut, *timeout)
        self._request().wait(*left)

    def get_future(self) -> Any:
        """Return a future that is complete when the transport's own is."""
        whole: torch.futures.Future[Any] = torch.futures.Future()

        def settle(done: torch.futures.Future[Any]) -> None:
            try:
                whole.set_result(done.value())
            except Exception as error:
                whole.set_exception(error)

        def follow(_: torch.futures.Future[Any]) -> None:
            try:
                self._request().get_future().add_done_callback(settle)
            except Exception as error:
                whole.set_exception(error)

        self._started.add_done_callback(follow)
        return whole

    def result(self) -> Any:
        """Return the transport's tensors."""
        _left(self._shut)
        return self._request().result()


class Batched:
    """The shared request of all messages that are handed over in one batch."""

    def __init__(self) -> None:
        self._inner: Any = None

    def hold(self, inner: Any) -> None:
        """Set the transport's request, once there is one."""
        self._inner = inner

    def wait(self, *timeout: Any) -> None:
        """Block until the transport is done with all of them."""
        self._inner.wait(*timeout)


class Deferred:
    """A receive that is handed to the transport once its source is known.

    It has the methods of a transport's request, so that :class:`Request` can hold it.

    Args:
        group: name of the process group.
        tag: the receive's tag.
        start: posts the receive from a global rank, and returns the transport's request and the
            rank in the group.

    Attributes:
        channel: the group and the tag, on which later receives must queue behind it.
        source: the rank in the group, once it is known.
    """

    def __init__(self, group: str, tag: int, start: Callable[[int], tuple[Any, int]]) -> None:
        self.channel = group, tag
        self.source = ANY
        self._start = start
        self._inner: Any = None
        self._error: RuntimeError | None = None
        self._shut = _thread.allocate_lock()
        self._shut.acquire()

    def resolve(self, source: int) -> None:
        """Post the receive, now that the judge has named its source."""
        try:
            self._inner, self.source = self._start(source)
        except RuntimeError as error:
            self._error = error  # raised in the waiting thread; this one has others to serve
        finally:
            self._shut.release()

    def run_callbacks(self) -> None:
        """Do nothing: a receive has no future."""

    def wait(self, *timeout: timedelta) -> None:
        """Block until the source is known and the message has arrived."""
        left = _left(self._shut, *timeout)
        if self._error is not None:
            raise self._error
        self._inner.wait(*left)


def _left(shut: _thread.LockType, *timeout: timedelta) -> tuple[timedelta, ...]:
    """Wait for a lock that is released once for all; return the rest of the time limit, if any.

    Raises:
        _NotYet: the time limit ended first.
    """
    began = time.monotonic()
    seconds = timeout[0].total_seconds() if timeout else -1
    if not shut.acquire(timeout=seconds):
        raise _NotYet
    shut.release()
    if not timeout:
        return ()
    return (timedelta(seconds=max(seconds - (time.monotonic() - began), 1e-3)),)


# Futures of operations. ------------------------------------------------------------

# torch waits for its own futures in C++, where the recorder would not see it; these report the
# wait, and check the buffers, as ``Request.wait`` does.  The recorder knows of callbacks that
# have yet to run, since they may still send what others wait for.

_torch_collect_all, _torch_wait_all = torch.futures.collect_all, torch.futures.wait_all


class Future(TorchFuture[Any]):
    """A future of some operations, or of callbacks that follow them, whose waits are reported.

    Args:
        requests: the requests of these operations, at least one.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        devices = [request.device for request in requests]
        on_gpu = [device for device in devices if device.type == "cuda"]
        super().__init__(devices=list(dict.fromkeys(on_gpu)) or None)
        self._requests = requests

    def wait(self) -> Any:
        """Block until it is complete, and return its value."""
        for request in self._requests:
            request.await_future()
        self._observe()
        return super().wait()

    def value(self) -> Any:
        """Return its value, once it is complete."""
        if self.done():
            self._observe()
        return super().value()

    def done(self) -> bool:
        """Return whether it is complete."""
        done = super().done()
        if done:
            self._observe()
        return done

    def _observe(self) -> None:
        for request in self._requests:
            request.observe()

    def then(self, callback: Callable[[Any], Any]) -> Future:
        """Return the future of a callback, which runs when this one is complete."""
        child = type(self)(self._requests)

        def follow(_: Any) -> None:
            try:
                value = callback(self)
            except Exception as error:
                child.set_exception(error)
            else:
                child.set_result(value)

        self._follow(follow)
        return child

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Run a callback when this is complete."""
        self._follow(lambda _: callback(self))

    def _follow(self, callback: Callable[[Any], None]) -> None:
        recorder, token = self._requests[0].recorder, object()
        recorder.callbacks[token] = [request.op for request in self._requests]

        def begin(done: Any) -> None:
            # a helper thread serves other operations, for which the callback may wait
            if threading.current_thread() in recorder.helpers:
                threading.Thread(target=run, args=(done,), daemon=True).start()
            else:
                run(done)

        def run(done: Any) -> None:
            # from here on, the thread that runs the callback can be inspected
            recorder.callbacks.pop(token, None)
            self._observe()
            callback(done)

        super().add_done_callback(begin)

    @property
    def complete(self) -> bool:
        """Whether it is complete, without this counting as the program's question."""
        return super().done()

    def block(self) -> None:
        """Wait for it in torch, without a report."""
        torch._C.Future.wait(self)


def settle_later(
    inner: Any,
    future: Future,
    settled: Callable[[Any], Any],
    lost: Callable[[Exception], Exception],
) -> None:
    """Complete a future when the transport's own is.

    Args:
        inner: the transport's future.
        future: the future to complete.
        settled: turns the transport's value into the value of ``future``.
        lost: turns the transport's error into the error of ``future``.
    """

    def follow(done: Any) -> None:
        try:
            value = done.value()
        except Exception as error:
            future.set_exception(lost(error))
            return
        try:
            value = settled(value)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    inner.add_done_callback(follow)


def collect_all(futures: Sequence[Any]) -> Any:
    """Replace ``torch.futures.collect_all`` by one whose future reports waits."""
    ours = [future for future in futures if isinstance(future, Future)]
    collected = _torch_collect_all(list(futures))
    if not ours:
        return collected
    every = type(ours[0])([request for future in ours for request in future._requests])

    def follow(done: Any) -> None:
        # each future holds its own value or error
        every.set_result(list(futures))

    collected.add_done_callback(follow)
    return every


def wait_all(futures: Sequence[Any]) -> list[Any]:
    """Replace ``torch.futures.wait_all`` by one that reports its waits."""
    for future in futures:
        if isinstance(future, Future):
            for request in future._requests:
                request.await_future()
    _torch_collect_all(list(futures)).wait()
    return [future.wait() for future in futures]


# Waits in C++ at the end of a backward pass. ----------------------------------------

# The reducer of torch's ``DistributedDataParallel`` begins collectives during a backward pass. It
# waits for their futures in C++, in a callback that the autograd engine runs when the gradients are
# there. The engine runs its callbacks in the order in which they were added, and the reducer adds
# its own after it has begun the last collective. So a callback that is added as each one begins
# waits just before the reducer would, for the same, and in Python, where the wait is reported.

#: The function from which Python enters the autograd engine.
_ENTRY = torch.autograd.graph._engine_run_backward.__code__


def _called_by_engine(frame: FrameType) -> bool:
    """Return whether a function, whose frame is given, was called from C++ in a backward pass."""
    return frame.f_back is not None and frame.f_back.f_code is _ENTRY


def _wait_when_backward_ends(wait: Callable[[], None]) -> None:
    """Call ``wait`` when the backward pass of this thread has computed all gradients.

    A pass inside another one, as of a reentrant checkpoint, may end long before the reducer waits;
    nothing is added to it, so that no rank waits earlier than it would.  Outside of a backward
    pass, where ``Join`` calls a hook, whoever called waits by itself.
    """
    if _passes() == 1:
        torch.autograd.Variable._execution_engine.queue_callback(wait)


def _passes() -> int:
    """Return the number of backward passes that this thread is in, one inside the other."""
    entries = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        entries += frame.f_code is _ENTRY
        frame = frame.f_back
    return entries


def report_comm_hooks() -> None:
    """Let this process report the waits for the futures that DDP's communication hooks return."""
    module: Any = dist
    register = module._register_comm_hook

    def register_comm_hook(reducer: Any, state: Any, hook: Callable[..., Any]) -> None:
        @functools.wraps(hook)
        def reported(state: Any, bucket: Any) -> Any:
            future = hook(state, bucket)
            if isinstance(future, TorchFuture):
                _wait_when_backward_ends(functools.partial(_await, future))
            return future

        register(reducer, state, reported)

    module._register_comm_hook = register_comm_hook
    # torch's hooks in C++ read values in C++ from a future, and ours holds objects of Python; its
    # hooks in Python do the same
    DistributedDataParallel._register_builtin_comm_hook = _register_builtin_comm_hook  # type: ignore[method-assign]


def _await(future: TorchFuture[Any]) -> None:
    future.wait()


def _register_builtin_comm_hook(ddp: DistributedDataParallel, kind: Any) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    hooks = {
        "ALLREDUCE": default_hooks.allreduce_hook,
        "FP16_COMPRESS": default_hooks.fp16_compress_hook,
    }
    ddp.register_comm_hook(ddp.process_group, hooks[kind.name])
