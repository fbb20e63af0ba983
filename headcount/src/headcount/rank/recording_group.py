"""The recording process group, which reports every call.

It is a Python subclass of ``dist.ProcessGroup`` around a private group of a backend.
``torch.distributed`` calls its methods instead of the transport's; each call is refused or
reported, and only then handed on.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch.autograd.graph import increment_version
from torch.distributed.constants import default_pg_timeout

from headcount.core.codec import unpack
from headcount.core.events import ANY, Same
from headcount.core.source_locations import line_here
from headcount.core.values import reduction_name, tensors_in
from headcount.core.verdict import Diagnosis
from headcount.rank.arguments import (
    COLLECTIVES,
    ONE_BY_ONE,
    OTHER_NAME,
    REFUSED,
    SAME_SIZE,
    called,
    destroyed_text,
    own_tensors,
    require_message,
    require_peer,
    require_rank,
    require_tag,
    shared_outputs,
    signatures,
)
from headcount.rank.recorder import ReceiveWatcher, Recorder, checksum
from headcount.rank.requests import (
    Batched,
    Deferred,
    Gated,
    PrivateBuffers,
    Request,
    TransportError,
    WaitExpired,
    hand_over,
    milliseconds,
)
from headcount.rank.torch_group import TorchGroup
from headcount.rank.transports import FOREVER, Backend

__all__ = ["OVERLOAD", "RecordingGroup", "imitate_operators", "short_limit"]

# The marks of a plain world in autograd's history. ----------------------------------
#
# There, every collective goes through an operator of torch's dispatcher.  Autograd has no kernel
# for it, and notes that on the tensors that it returns: whoever differentiates through them is
# warned.  The recording group calls its transport directly, so it calls operators of its own
# for the note alone.

#: The operators of collectives that return the tensors they write, by method.
_OPERATORS = {
    "broadcast": "broadcast_",
    "allreduce": "allreduce_",
    "allgather": "allgather_",
    **dict.fromkeys(("_allgather_base", "all_gather_single"), "_allgather_base_"),
    "reduce_scatter": "reduce_scatter_",
    **dict.fromkeys(("_reduce_scatter_base", "reduce_scatter_single"), "_reduce_scatter_base_"),
    "alltoall": "alltoall_",
    "scatter": "scatter_",
}

#: The overload of each that is ours; torch's warnings name it.
OVERLOAD = "recorded"


def imitate_operators() -> torch.library.Library:
    """Define overloads of torch's operators for collectives, which move nothing.

    Call this once, in the process that ranks are forked from, and keep what it returns.
    """
    library = torch.library.Library("c10d", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in dict.fromkeys(_OPERATORS.values()):
        own = f"{name}.{OVERLOAD}"
        library.define(f"{own}(Tensor[] written, Tensor[] read) -> Tensor[]")  # type: ignore[no-untyped-call]
        library.impl(own, lambda written, read: written, "CPU")  # type: ignore[no-untyped-call]
    return library


def _note_history(
    method: str, written: Sequence[torch.Tensor], read: Sequence[torch.Tensor]
) -> None:
    """Let autograd note that a collective has changed these tensors, if it has a history of any."""
    if not torch.is_grad_enabled() or not any(one.requires_grad for one in (*written, *read)):
        return
    packet = getattr(torch.ops.c10d, _OPERATORS.get(method, ""), None)
    operator = getattr(packet, OVERLOAD, None)
    if operator is not None:
        operator(list(written), list(read))


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _past_modes(method: _Method) -> _Method:
    """Let a method read tensors as C++ does: past classes and modes of Python's own.

    A mode, such as a device that is set as the default or what maps a script's GPUs to the CPU
    (see :mod:`headcount.rank.cuda_mapping`), would be asked each time that a tensor is.
    """

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return method(*args, **kwargs)

    return cast(_Method, call)


class RecordingGroup(TorchGroup):
    """A process group that reports its operations to a :class:`Recorder`.

    Args:
        inner: the transport: the backend's group of the same ranks.
        backend: the backend.
        rank, size: rank of this process in the group, and number of members.
        members: the global ranks, indexed by rank in the group.
        name: the group's name, the same on every member.
        recorder: the rank's recorder.
        limit: milliseconds after which its waits give up; 0 means never.
    """

    #: whether gloo stands in for NCCL, which coalesces calls and takes one tensor in any shape
    for_nccl = False
    #: whether a barrier is on a GPU, as it is where init_process_group has got a device
    for_device = False
    #: the class of the requests that its operations return
    _request: type[Request] = Request
    #: the same ranks on gloo, if it has gloo for tensors on the CPU and NCCL for those on a GPU
    on_cpu: RecordingGroup | None = None

    def __init__(
        self,
        inner: Any,
        backend: Backend,
        rank: int,
        size: int,
        members: Sequence[int],
        name: str,
        recorder: Recorder,
        limit: int = 0,
    ) -> None:
        super().__init__(rank, size, members, name)
        self._may_be_nccl = self.for_nccl and recorder.backend != "gloo"
        self._rank, self._size = rank, size
        self._inner = inner
        self._backend = backend
        self._device = backend.device(recorder.rank)
        self._batch: Batched | None = None
        #: the requests of calls that are being coalesced
        self._coalesced: list[Request] | None = None
        self._coalescing = contextlib.ExitStack()
        self._torch_name = name
        #: the line on which this rank destroyed it
        self._destroyed: int | None = None
        self._recorder = recorder
        self._limit = limit
        recorder.grouped(name, self._members)

    # What torch asks a group about itself. -----------------------------------

    # asked several times a message, and torch's own answers go through C++
    def rank(self) -> int:
        """Return the rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of members."""
        return self._size

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """Return a name other than ``gloo``, of which DDP would expect a gloo backend's threads."""
        return f"recorded {self._backend.name}"

    def getGroupName(self) -> str:  # noqa: N802
        """Return the name by which functional collectives find the group."""
        return self._torch_name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Store torch's name, which it sets after making the group."""
        self._torch_name = name

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time after which waits of the group give up; torch ≥ 2.15 offers it publicly."""
        self._limit = short_limit(timeout)

    @property
    def posted(self) -> int:
        """How many operations this rank has begun, in any group."""
        return self._recorder.posted

    def mark(self, text: str) -> None:
        """Report that the rank is at a named place; see :func:`headcount.core.events.mark`."""
        self._recorder.mark(text)

    def same(self, event: Same) -> None:
        """Report what the rank holds of a value; see :func:`headcount.same`."""
        self._recorder.emit(event, False)

    def pause(self) -> Any:
        """Wait until the judge lets this rank go on, and return what it tells then.

        What the judge does meanwhile is said by :class:`headcount.launch.world.Pause`.
        """
        value = self._recorder.pause()
        return unpack(value) if value else None

    def watch_receives(self, watcher: ReceiveWatcher) -> None:
        """Let an instrument be told of this rank's receives and waits, until the next call."""
        self._recorder.watcher = watcher

    def destroy(self, line: int) -> None:
        """Note the line on which the rank has destroyed the group."""
        self._require_there()
        self._destroyed = line

    def _require_there(self) -> None:
        if self._destroyed is not None:
            raise ValueError(destroyed_text(self._members, self._destroyed))

    # Point to point. ---------------------------------------------------------

    @_past_modes
    def send(self, tensors: list[torch.Tensor], dst: int, tag: int) -> Request:
        """Send to rank ``dst`` of the group."""
        if self.on_cpu is not None and self._sends_on_cpu():
            return self.on_cpu.send(tensors, dst, tag)
        tensor = self._plain(tensors, "send")
        self._require_there()
        require_peer(dst, self.rank(), self.size())
        require_tag(tag)
        recorder = self._recorder
        op = recorder.post(
            "send", self._name, peer=self._members[dst], tag=tag, measure=tensor, reads=(tensor,),
            limit=self._limit,
        )  # fmt: skip
        verify = None
        # a program that waits at once cannot write to the buffer before it waits
        if recorder.strict and not recorder.waited_at_once(op):
            verify = self._unchanged_check(op, tensor)
        inner = hand_over(recorder, op, lambda: self._inner.send([tensor], dst, tag))
        return self._new_request(
            recorder, op, self._batch or inner, verify=verify, limit=self._limit
        )

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int) -> Request:
        """Receive from rank ``src`` of the group."""
        require_peer(src, self.rank(), self.size())
        return self._receive(tensors, src, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Request:
        """Receive from any rank of the group."""
        return self._receive(tensors, ANY, tag)

    @_past_modes
    def _receive(self, tensors: list[torch.Tensor], src: int, tag: int) -> Request:
        if self.on_cpu is not None and self._sends_on_cpu():
            return self.on_cpu._receive(tensors, src, tag)
        tensor = self._plain(tensors, "recv")
        self._require_there()
        require_tag(tag)
        recorder, wildcard, here = self._recorder, src == ANY, line_here()
        recorder.writes_to(tensors[0], tensor)
        *_, waits_at_once = here  # as dist.recv does: nothing can be read too early
        checked = recorder.strict and not waits_at_once
        # a checked receive becomes visible only when the program waits for it, so that reading
        # too early goes wrong every time and not now and then
        landing, finish, deferred = tensor, None, None
        if checked:
            landing = torch.empty_like(tensor)
            finish = partial(_copy, tensor, landing)
        elif recorder.strict:
            finish = partial(increment_version, (tensor,))  # as a copy does, for autograd
        if recorder.must_defer(wildcard, self._name, tag):
            deferred = Deferred(self._name, tag, lambda s: self._start_receive(landing, s, tag))
        op = recorder.post(
            "recv",
            self._name,
            peer=ANY if wildcard else self._members[src],
            tag=tag,
            measure=tensor,
            writes=(tensor,),
            deferred=deferred,
            limit=self._limit,
            here=here,
        )
        verify = None
        if checked:
            # the count of a view includes every write to its base
            counted = not tensors[0]._is_view()
            verify = self._unwritten_check(op, tensor, counted)
        inner: Any = deferred
        if deferred is None:
            inner = hand_over(recorder, op, lambda: self._take(op, landing, tensor, src, tag))
            inner = self._batch or inner
        return self._new_request(
            recorder, op, inner, source=src, verify=verify, finish=finish, limit=self._limit
        )

    def _take(
        self, op: int, landing: torch.Tensor, tensor: torch.Tensor, src: int, tag: int
    ) -> Any:
        """Let the transport receive into ``landing``, for ``tensor``; return its request."""
        return self._inner.recv([landing], src, tag)

    def _start_receive(self, landing: torch.Tensor, source: int, tag: int) -> tuple[Any, int]:
        src = self._members.index(source)
        return self._inner.recv([landing], src, tag), src

    def _unchanged_check(self, op: int, tensor: torch.Tensor) -> Callable[[], None]:
        before = checksum(tensor)

        def verify() -> None:
            if checksum(tensor) != before:
                self._recorder.raced(op)

        return verify

    def _unwritten_check(self, op: int, tensor: torch.Tensor, counted: bool) -> Callable[[], None]:
        """Return the check of a receive, whose buffer must not even be written the same contents.

        ``counted`` says that torch counts the writes to this tensor and to no other.
        """
        before = checksum(tensor)

        def verify() -> None:
            # the count is read in any case, for the lines between which it changed
            written = self._recorder.written(op)
            if (written and counted) or checksum(tensor) != before:
                self._recorder.raced(op)

        return verify

    @contextlib.contextmanager
    def batched(self) -> Iterator[None]:
        """Report the messages started in the context as one batch.

        They are handed over as one if the backend requires that.
        """
        with self._recorder.batched():
            if not self._backend.coalesces:
                yield
                return
            self._inner.begin_batch()
            self._batch = batch = Batched()
            try:
                yield
            finally:
                self._batch = None
                batch.hold(self._inner.end_batch())

    def _plain(self, tensors: list[torch.Tensor], what: str) -> torch.Tensor:
        """Return the one tensor of a message, detached.

        Raises:
            ValueError: the transport cannot take it.
        """
        (tensor,) = tensors
        require_message(tensor, what, self._device)
        return tensor.detach()

    # Collectives. ------------------------------------------------------------

    @_past_modes
    def _collective(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        kind = COLLECTIVES[method]
        self._require_there()
        if self.on_cpu is not None and self._sends_on_cpu((*args, *kwargs.values())):
            return self.on_cpu._collective(method, args, kwargs)
        recorder = self._recorder
        recorder.require_allowed(kind)
        written = tensors_in(args[:1])
        read = tensors_in(args[1:2])
        # gloo adds up sparse tensors; their elements lie elsewhere afterwards, so none are watched
        sparse = method == "allreduce" and not recorder.limited and _is_sparse(written)
        root, detail = self._agreement(args, kwargs)
        # the source of a broadcast only reads what it gives, which others may read meanwhile
        is_source = kind == "broadcast" and root == self._members[self.rank()]
        changed = [] if is_source else written
        vectors = self.for_nccl and method in _ONE_TENSOR
        uneven = self._may_be_nccl and method == "allgather" and len({t.shape for t in written}) > 1
        taken = (*map(_as_vectors, args[:2]), *args[2:]) if vectors else args
        found = signatures(
            method, kind, taken, rank=recorder.rank, place=self.rank(), size=self.size(),
            root=-1 if root == ANY else self._members.index(root), gloo=self._backend.gloo_tensors,
            uneven=uneven, sparse=sparse,
        )  # fmt: skip
        shared = shared_outputs(kind, written)
        if shared:
            recorder.violated(Diagnosis.BUFFER_RACE, shared)
        takes = len(written) == 1 and found and found[0].takes
        watched = bool(takes and changed) and recorder.writes_to(written[0])
        finish, given, private = None, args, None
        in_flight = _in_flight(args, kwargs)
        # the transport's threads would keep a watched tensor for longer than the call
        apart = in_flight or watched
        if recorder.strict and apart and PrivateBuffers.possible(args):
            private = PrivateBuffers(args, changed)
            finish, given = private.deliver, private.args
        if vectors:
            given = (*map(_as_vectors, given[:2]), *given[2:])
        start = self._starter(method, given, kwargs)
        if uneven:
            start = partial(self._broadcast_each, *given[:2])
        if self._may_be_nccl:
            begin = start
            start = lambda: _WithFuture(begin(), recorder, written)  # noqa: E731
        gate = Gated(self._in_order(start))
        op = recorder.post(
            kind,
            self._name,
            peer=root,
            detail=detail,
            deferred=gate,
            measure=written[0] if kind in SAME_SIZE and written and not sparse else None,
            signatures=found,
            reads=written if is_source else read,
            writes=() if sparse else changed,
            shapes=[] if uneven else [one.shape for one in own_tensors(kind, written, read)],
            limit=self._limit,
            at_once=not in_flight and self._coalesced is None,
        )
        self._posted(gate)
        if recorder.met is not None and not sparse:
            recorder.met(kind, self._name, self._members, written)
        _note_history(method, written, read)
        if not in_flight:
            private = None  # nobody asks for it while it is in flight
        verify = None if private is None else self._untouched_check(op, private)
        return self._new_request(
            recorder, op, gate, verify=verify, finish=finish, private=private,
            limit=self._limit, lasting=self._backend.name == "gloo", device=self._device,
        )  # fmt: skip

    def _posted(self, gate: Gated) -> None:
        """Do nothing: the judge opens the gate of a collective when all members have called."""

    def _untouched_check(self, op: int, private: PrivateBuffers) -> Callable[[], None]:
        def verify() -> None:
            if private.changed():
                self._recorder.raced(op)

        return verify

    def _starter(
        self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], Any]:
        """Return a function that calls the method of the transport, under whichever name it has.

        Raises:
            NotImplementedError: the transport has it under no name.
        """
        for name in (method, OTHER_NAME.get(method, method)):
            if hasattr(self._inner, name):
                call = getattr(self._inner, name)
                return lambda: call(*args, **kwargs)
        if method not in ONE_BY_ONE:
            raise NotImplementedError(f"{self._backend.name} has no {method} here")
        outputs, inputs, *rest = args
        starters = [
            self._starter(ONE_BY_ONE[method], (out, given, *rest), kwargs)
            for out, given in zip(outputs, inputs, strict=True)
        ]
        return lambda: _Several([start() for start in starters])

    def _broadcast_each(self, outputs: Any, inputs: Any) -> _Several:
        """Gather tensors of different shapes, as NCCL does: each rank broadcasts its own."""
        outputs[0][self._rank].copy_(inputs[0])
        requests = []
        for root, tensor in enumerate(outputs[0]):
            options = dist.BroadcastOptions()
            options.rootRank = root
            if tensor.numel():
                requests.append(self._inner.broadcast([tensor], options))
        return _Several(requests)

    def _in_order(self, start: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function for another thread that keeps this thread's order of work on a GPU."""
        if self._device.type != "cuda":
            return start
        stream = torch.cuda.current_stream(self._device)

        def call() -> Any:
            with torch.cuda.stream(stream):
                return start()

        return call

    def monitored_barrier(self, timeout: timedelta | None = None, **kwargs: Any) -> None:
        """Record, or refuse, a barrier that blocks inside the transport."""
        recorder = self._recorder
        self._require_there()
        recorder.require_allowed("barrier")
        limit = short_limit(timeout)
        op = recorder.post("barrier", self._name)
        given = {"timeout": timeout if limit else FOREVER, **kwargs}
        recorder.blocked(op, limit)
        began = time.monotonic()
        try:
            hand_over(recorder, op, lambda: self._inner.monitored_barrier(**given))
        except TransportError as error:
            if limit and time.monotonic() - began >= limit / 1000:
                raise WaitExpired(str(error)) from None
            raise
        finally:
            recorder.resumed()
        recorder.done(op)

    def _agreement(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, str]:
        """Return the root (a global rank) and the reduction, on which all ranks must agree."""
        root, reduction = ANY, ""
        for options in (*args, *kwargs.values()):
            if hasattr(options, "rootRank"):
                require_rank(options.rootRank, self.size())
                root = self._members[options.rootRank]
            if hasattr(options, "reduceOp"):
                reduction = reduction_name(options.reduceOp)
        return root, reduction

    def _start_coalescing(self, device: torch.device) -> None:
        if not self.for_nccl:
            raise NotImplementedError("collectives are not coalesced here; call them one by one")
        self._coalesced = []
        self._coalescing.enter_context(self._recorder.batched())

    def _end_coalescing(self, device: torch.device) -> Any:
        self._coalescing.close()
        requests, self._coalesced = self._coalesced, None
        return _Several(requests or [])

    def _sends_on_cpu(self, given: Sequence[Any] = ()) -> bool:
        """Return whether the running function sends on the CPU; a barrier may be on a GPU."""
        name = called()
        if name == "barrier":
            return not (self.for_device or any(getattr(one, "device_ids", None) for one in given))
        return name in _ON_CPU

    def _new_request(self, *args: Any, **kwargs: Any) -> Request:
        request = self._request(*args, **kwargs)
        if self._coalesced is not None:
            self._coalesced.append(request)
        return request


def short_limit(timeout: timedelta | None) -> int:
    """Return a time limit in milliseconds, or 0 for torch's default, which counts as none."""
    return milliseconds(timeout) if timeout is not None and timeout < default_pg_timeout else 0


#: Functions that send on the CPU where a group has a backend for that.
_ON_CPU = frozenset(
    {
        *("all_gather_object", "broadcast_object_list", "gather_object"),
        *("recv_object_list", "scatter_object_list", "send_object_list"),
    }
)


#: Methods that take the parts of all ranks in one tensor, which gloo cuts along its rows alone.
_ONE_TENSOR = frozenset(
    (
        "_allgather_base",
        "_reduce_scatter_base",
        "all_gather_single",
        "all_gather_single_coalesced",
        "allgather_into_tensor_coalesced",
        "reduce_scatter_single",
        "reduce_scatter_single_coalesced",
        "reduce_scatter_tensor_coalesced",
    )
)


def _as_vectors(value: Any) -> Any:
    """Return tensors as vectors of the same memory, but those that gloo refuses anyway."""
    if isinstance(value, torch.Tensor):
        return value.detach().view(-1) if value.is_contiguous() else value
    return [_as_vectors(one) for one in value]


class _Several:
    """Several requests, waited for as one."""

    def __init__(self, requests: Sequence[Any]) -> None:
        self._requests = requests

    def wait(self, *timeout: Any) -> None:
        for request in self._requests:
            request.wait(*timeout)

    def get_future(self) -> Any:
        every = torch._C._collect_all([request.get_future() for request in self._requests])
        return every.then(lambda done: [t for one in done.value() for t in one.value()])

    def result(self) -> list[torch.Tensor]:
        return [tensor for request in self._requests for tensor in request.result()]


class _WithFuture:
    """A request of gloo's, which has a future also where gloo has none and NCCL has one."""

    def __init__(self, request: Any, recorder: Recorder, written: list[torch.Tensor]) -> None:
        self.wait, self.result = request.wait, request.result
        self._request, self._recorder, self._written = request, recorder, written

    def get_future(self) -> Any:
        with contextlib.suppress(RuntimeError):  # gloo has none for some collectives
            return self._request.get_future()
        whole: torch.futures.Future[Any] = torch.futures.Future()

        def follow() -> None:
            try:
                self.wait()
            except RuntimeError as error:
                whole.set_exception(error)
            else:
                whole.set_result(self._written)

        waits = threading.Thread(target=follow, daemon=True)
        self._recorder.helpers.add(waits)
        waits.start()
        return whole


def _is_sparse(tensors: Sequence[torch.Tensor]) -> bool:
    return bool(tensors) and all(one.layout is torch.sparse_coo for one in tensors)


def _in_flight(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the call is asynchronous."""
    return any(getattr(options, "asyncOp", False) for options in (*args, *kwargs.values()))


def _copy(tensor: torch.Tensor, landing: torch.Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(landing)


def _collective_method(method: str) -> Callable[..., Request]:
    def call(self: RecordingGroup, *args: Any, **kwargs: Any) -> Request:
        return self._collective(method, args, kwargs)

    call.__name__ = method
    call.__doc__ = f"Record, or refuse, ``{COLLECTIVES[method]}``."
    return call


def _refusal(method: str) -> Callable[..., None]:
    def call(self: RecordingGroup, *args: Any, **kwargs: Any) -> None:
        message = f"{method} would bypass the recording group; use dist.new_group"
        self._recorder.violated(Diagnosis.FORBIDDEN_CALL, message)
        raise RuntimeError(message)

    call.__name__ = method
    call.__doc__ = f"Refuse ``{method}``."
    return call


for _method in COLLECTIVES:
    setattr(RecordingGroup, _method, _collective_method(_method))
for _method in REFUSED:
    setattr(RecordingGroup, _method, _refusal(_method))
