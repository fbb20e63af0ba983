"""The rank's side of the record: numbers operations, checks buffers, reports."""

from __future__ import annotations

import ctypes
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from grader.traffic.events import ANY, Blocked, Done, Event, Failed, Polled, Posted, Violated
from grader.traffic.sites import line_here
from grader.values import dtype_name
from grader.verdict import Diagnosis

__all__ = [
    "Deferred",
    "ForbiddenCall",
    "Gated",
    "Recorder",
    "Request",
    "TransportError",
    "checksum",
]

#: A range of memory, first byte and one past the last.
Span = tuple[int, int]


class ForbiddenCall(RuntimeError):
    """The exercise asks the student to write what was called."""


class TransportError(RuntimeError):
    """The transport failed: a peer died, or the connection broke.

    Marked as such so that the judge can tell a victim from a culprit.
    """


def spans(tensors: Iterable[torch.Tensor]) -> list[Span]:
    """Where the tensors lie in memory; empty ones lie nowhere."""
    return [(t.data_ptr(), t.data_ptr() + t.nbytes) for t in tensors if t.nbytes]


def _overlap(some: list[Span], others: list[Span]) -> bool:
    return any(a < d and c < b for a, b in some for c, d in others)


def checksum(tensor: torch.Tensor) -> int:
    """CRC-32 of a contiguous CPU tensor's bytes, of any dtype, without a copy."""
    if not tensor.nbytes:
        return 0
    memory = (ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())
    return zlib.crc32(memory)


@dataclass
class _Flight:
    """An operation whose buffers belong to the transport for now."""

    kind: str
    line: int
    reads: list[Span]
    writes: list[Span]
    blocking: bool
    request: Request | None = None


@dataclass
class Recorder:
    """One per rank: every recording group of the rank reports through it.

    Args:
        rank: global rank.
        emit: takes an event; ``flush=True`` asks that it, and all before it,
            have left the process when the call returns.
        allowed: names of the collectives that may be called; ``None`` is all.
        strict: receive into a private buffer that reaches the student's only
            on ``wait()``, and check that a buffer is unchanged while its send
            is in flight.  Both make mistakes show every time instead of
            sometimes; both cost a pass over the data.
    """

    rank: int
    emit: Callable[[Event, bool], None]
    allowed: frozenset[str] | None = None
    strict: bool = True
    _next: int = 0
    _flights: dict[int, _Flight] = field(default_factory=dict)
    _unresolved: dict[int, Deferred | Gated] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def begin(self, allowed: frozenset[str] | None, strict: bool) -> None:
        """Start a new record, for a new case."""
        self.allowed, self.strict = allowed, strict
        self._next = 0
        self._flights.clear()
        self._unresolved.clear()

    def require_allowed(self, kind: str) -> None:
        """Raise :class:`ForbiddenCall`, and report it, unless ``kind`` is allowed."""
        if self.allowed is None or kind in self.allowed:
            return
        message = f"{kind} is what this exercise asks you to write; use send and recv"
        if self.allowed:
            message += f" (allowed besides: {', '.join(sorted(self.allowed))})"
        self.violated(Diagnosis.FORBIDDEN_CALL, message)
        raise ForbiddenCall(message)

    def violated(self, diagnosis: Diagnosis, message: str) -> None:
        """Report that this rank broke a rule, at the line that is running."""
        file, line, _ = line_here()
        self.emit(Violated(diagnosis.value, message, file, line, time.monotonic_ns()), True)

    def post(
        self,
        kind: str,
        group: str,
        *,
        peer: int = ANY,
        tag: int = 0,
        measure: torch.Tensor | None = None,
        reads: Iterable[torch.Tensor] = (),
        writes: Iterable[torch.Tensor] = (),
        detail: str = "",
        deferred: Deferred | Gated | None = None,
    ) -> int:
        """Report an operation before it is handed to the transport; its number.

        ``measure`` is the tensor whose size and dtype both ends must agree on.
        """
        file, line, blocking = line_here()
        flight = _Flight(kind, line, spans(reads), spans(writes), blocking)
        with self._lock:
            self._check_race(flight)
            op, self._next = self._next, self._next + 1
            self._flights[op] = flight
            if deferred is not None:
                self._unresolved[op] = deferred
        if measure is None:
            count, nbytes, dtype = 0, 0, ""
        else:
            count, nbytes, dtype = measure.numel(), measure.nbytes, dtype_name(measure.dtype)
        self.emit(
            Posted(
                op, kind, peer, tag, group, count, nbytes, dtype, detail, blocking,
                deferred is not None,
                file, line, time.monotonic_ns(),
            ),
            True,
        )  # fmt: skip
        return op

    def _check_race(self, new: _Flight) -> None:
        for old in self._flights.values():
            if _overlap(new.writes, old.writes + old.reads) or _overlap(new.reads, old.writes):
                self.violated(
                    Diagnosis.BUFFER_RACE,
                    f"{new.kind} uses the buffer of the {old.kind} of line {old.line},"
                    " which is still in flight; wait for that request first",
                )
                return

    def hold(self, op: int, request: Request) -> None:
        """Keep a request alive while its buffers are in flight."""
        self._flights[op].request = request

    def blocked(self, op: int) -> None:
        """Report that the rank now waits for ``op``, unless the post has said so."""
        flight = self._flights.get(op)
        if flight is not None and flight.blocking:
            return
        file, line, _ = line_here()
        self.emit(Blocked(op, file, line, time.monotonic_ns()), True)

    def polled(self, op: int) -> None:
        """Report that the rank asks whether ``op`` is complete."""
        self.emit(Polled(op, time.monotonic_ns()), True)

    def done(self, op: int) -> None:
        """Report that the rank has seen ``op`` complete; leaves with the next event."""
        with self._lock:
            self._flights.pop(op, None)
        self.emit(Done(op, time.monotonic_ns()), False)

    def failed(self, op: int) -> None:
        """Report that the transport gave up on ``op``."""
        self.emit(Failed(op, time.monotonic_ns()), True)

    def must_defer(self, wildcard: bool, group: str, tag: int) -> bool:
        """Whether a receive has to wait for the judge to name its source.

        A wildcard has to, and so has every receive posted behind one on the
        same tag, since the transport itself would not keep their order.
        """
        with self._lock:
            return wildcard or any(
                isinstance(d, Deferred) and (d.group, d.tag) == (group, tag)
                for d in self._unresolved.values()
            )

    def resolve(self, op: int, source: int) -> None:
        """The judge's word on deferred operation ``op``, see ``Resolution``."""
        with self._lock:
            deferred = self._unresolved.pop(op, None)
        if deferred is not None:
            deferred.resolve(source)


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
        """The transport's own future; its completion counts as the wait."""
        future: torch.futures.Future[Any] = self._inner.get_future()
        future.add_done_callback(lambda _: self._settle())
        return future

    def result(self) -> list[torch.Tensor]:
        """The tensors of a finished collective."""
        return list(self._inner.result())


class Gated:
    """A collective that is complete when everybody has called it, and not before.

    gloo lets some ranks leave a broadcast before others have come; MPI allows
    that and allows the opposite.  A program that works only in one of the two
    is wrong, and shows it every time if nobody leaves early.
    """

    def __init__(self) -> None:
        self._inner: Any = None
        self._everybody = threading.Event()

    def hold(self, inner: Any) -> Gated:
        """Take the transport's request, once there is one."""
        self._inner = inner
        return self

    def resolve(self, _: int) -> None:
        """Everybody has called it."""
        self._everybody.set()

    def wait(self, *timeout: Any) -> None:
        """Block until everybody has called, and the transport is done."""
        self._everybody.wait()
        self._inner.wait(*timeout)

    def get_future(self) -> Any:
        """The transport's own future."""
        return self._inner.get_future()

    def result(self) -> Any:
        """The transport's tensors."""
        return self._inner.result()


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
        self._posted = threading.Event()

    @property
    def posted(self) -> bool:
        """Whether the transport has the receive."""
        return self._posted.is_set()

    def resolve(self, source: int) -> None:
        """Post the receive, now that the judge has named its source."""
        self._inner, self.source = self._start(source)
        self._posted.set()

    def wait(self, timeout: Any = None) -> None:
        """Block until the source is known and the message is here."""
        self._posted.wait()
        self._inner.wait() if timeout is None else self._inner.wait(timeout)
