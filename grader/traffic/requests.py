"""What operations return: requests that can be waited for, and say so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from grader.traffic.events import ANY
from grader.traffic.recorder import Recorder

__all__ = ["Batched", "Deferred", "Gated", "Request", "TransportError", "hand_over", "require_peer"]


class TransportError(RuntimeError):
    """The transport failed: a peer died, or the connection broke.

    Marked as such so that the judge can tell a victim from a culprit.
    """


def hand_over(recorder: Recorder, op: int, start: Callable[[], Any]) -> Any:
    """Start an operation that has been reported; the transport's request.

    Raises:
        TransportError: the transport has lost the peer, or will not have it.
    """
    try:
        return start()
    except RuntimeError as error:
        recorder.refused(op)
        raise TransportError(str(error)) from error
    except Exception:
        recorder.refused(op)
        raise


def require_peer(peer: int, own: int, size: int) -> None:
    """Make sure that rank ``own`` of a group can exchange messages with ``peer``.

    Raises:
        ValueError: there is no such rank, or it is the rank itself, to which
            gloo has no connection.
    """
    if not 0 <= peer < size:
        raise ValueError(
            f"there is no rank {peer} in a group of {size}; its ranks are 0 to {size - 1}"
        )
    if peer == own:
        raise ValueError(
            f"rank {peer} cannot talk to itself: the peer is the same as the rank that calls"
        )


class Request(dist.Work):
    """What ``isend``, ``irecv`` and collectives return: waits, and says so.

    A second ``wait`` returns at once (gloo's own would hang), and
    ``is_completed`` tells the truth without a wait (gloo's own stays false).

    Args:
        recorder: the rank's recorder.
        op: the operation's number.
        inner: the transport's request, or a :class:`Deferred` receive.
        source: for a receive, the rank in the group that it comes from.
        verify: called when the wait begins, while the buffers are in flight.
        finish: called when the operation is complete.
    """

    def __init__(
        self,
        recorder: Recorder,
        op: int,
        inner: Any,
        source: int = ANY,
        verify: Callable[[], None] | None = None,
        finish: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._recorder = recorder
        self._op = op
        self._inner = inner
        self._source = source
        self._verify = verify
        self._finish = finish
        self._complete = False
        self._poller: threading.Thread | None = None
        self._error: TransportError | None = None
        recorder.hold(op, self)

    def wait(self, timeout: Any = None) -> bool:
        """Block until the operation is complete."""
        if not self._complete:
            self._recorder.blocked(self._op)
            self._begin()
            if self._poller is None:
                self._wait_inner(timeout)
            else:
                self._poller.join()
            self._settle()
        return True

    def _begin(self) -> None:
        """Check the buffers once, when the student first asks for completion."""
        if self._verify is not None:
            self._verify()
            self._verify = None

    def _wait_inner(self, timeout: Any = None) -> None:
        try:
            self._inner.wait() if timeout is None else self._inner.wait(timeout)
        except RuntimeError as error:
            self._error = TransportError(str(error))

    def _settle(self) -> None:
        if self._error is not None:
            self._recorder.failed(self._op)
            raise self._error
        if not self._complete:
            self._complete = True
            if self._finish is not None:
                self._finish()
            self._recorder.done(self._op)

    def is_completed(self) -> bool:
        """Whether the operation is complete, without blocking."""
        if not self._complete:
            self._begin()
            if self._poller is None:
                # gloo's point-to-point requests learn that they are done only
                # inside wait(), so something has to wait for them
                self._poller = threading.Thread(target=self._wait_inner, daemon=True)
                self._poller.start()
            if isinstance(self._inner, Deferred) and not self._inner.posted:
                self._recorder.polled(self._op)
            self._poller.join(timeout=1e-4)
            if not self._poller.is_alive():
                self._settle()
        return self._complete

    def is_success(self) -> bool:
        """Whether the operation completed."""
        return self._complete

    def source_rank(self) -> int:
        """Rank in the group that the message came from."""
        return int(self._inner.source) if isinstance(self._inner, Deferred) else self._source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future[Any]:
        """A future that is complete when the transport's own is; that counts as the wait."""
        inner: torch.futures.Future[Any] = self._inner.get_future()

        def settled(done: torch.futures.Future[Any]) -> Any:
            self._settle()
            return done.value()

        # one that follows: whoever waits for the transport's own might go on, and use the
        # buffer again, before a callback of it has said that the operation is complete
        return inner.then(settled)

    def result(self) -> list[torch.Tensor]:
        """The tensors of a finished collective."""
        return list(self._inner.result())


class Gated:
    """A collective that the transport gets when everybody has called it, and not before.

    By then the calls have been compared: gloo aborts the process, or misreads, if ranks
    disagree on a size or a type.  Besides, gloo lets some ranks leave a broadcast before
    others have come; MPI allows that and allows the opposite.  A program that works only in
    one of the two is wrong, and shows it every time if nobody leaves early.

    Args:
        start: hands the collective to the transport; gives its request.
    """

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._inner: Any = None
        self._error: Exception | None = None
        self._everybody = threading.Event()
        #: is complete when there is a request, or an error
        self._started: torch.futures.Future[Any] = torch.futures.Future()

    def holds(self, group: str, tag: int) -> bool:
        """Whether receives of a tag have to queue behind it: never."""
        return False

    def resolve(self, _: int) -> None:
        """Start it: everybody has called it, and all mean the same."""
        try:
            with torch.no_grad():  # as C++ would; the mode belongs to the caller's thread
                self._inner = self._start()
        except Exception as error:
            self._error = error  # for whoever waits; this thread has others to serve
        finally:
            self._everybody.set()
            self._started.set_result(None)

    def _request(self) -> Any:
        """The transport's request, once there is one."""
        self._everybody.wait()
        if self._error is not None:
            raise self._error
        return self._inner

    def wait(self, *timeout: Any) -> None:
        """Block until everybody has called, and the transport is done."""
        self._request().wait(*timeout)

    def get_future(self) -> Any:
        """A future that is complete when the transport's own is."""
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
        """The transport's tensors."""
        return self._request().result()


class Batched:
    """The one request of all messages that were handed over in a batch."""

    def __init__(self) -> None:
        self._inner: Any = None

    def hold(self, inner: Any) -> None:
        """Take the transport's request, once there is one."""
        self._inner = inner

    def wait(self, *timeout: Any) -> None:
        """Block until the transport is done with all of them."""
        self._inner.wait(*timeout)


class Deferred:
    """A receive that is handed to the transport once its source is known.

    Looks like a transport's request, so that :class:`Request` can hold it.

    Args:
        group: name of the process group.
        tag: the receive's tag.
        start: posts the receive from a global rank; gives the transport's
            request and the rank in the group.
    """

    def __init__(self, group: str, tag: int, start: Callable[[int], tuple[Any, int]]) -> None:
        self.group = group
        self.tag = tag
        self.source = ANY
        self._start = start
        self._inner: Any = None
        self._error: RuntimeError | None = None
        self._posted = threading.Event()

    def holds(self, group: str, tag: int) -> bool:
        """Whether receives of a tag have to queue behind it."""
        return (group, tag) == (self.group, self.tag)

    @property
    def posted(self) -> bool:
        """Whether the transport has the receive."""
        return self._posted.is_set()

    def resolve(self, source: int) -> None:
        """Post the receive, now that the judge has named its source."""
        try:
            self._inner, self.source = self._start(source)
        except RuntimeError as error:
            self._error = error  # for whoever waits; this thread has others to serve
        finally:
            self._posted.set()

    def wait(self, timeout: Any = None) -> None:
        """Block until the source is known and the message is here."""
        self._posted.wait()
        if self._error is not None:
            raise self._error
        self._inner.wait() if timeout is None else self._inner.wait(timeout)
