"""The rank's side of the trace: it numbers operations, checks buffers, and reports events."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import functools
import queue
import sys
import threading
import time
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import torch

from headcount.core.events import (
    ANY,
    WORLD,
    Blocked,
    Completed,
    Event,
    Expired,
    Failed,
    Grouped,
    Handling,
    Held,
    Marked,
    Outside,
    Paused,
    Polled,
    Posted,
    Remarked,
    Seen,
    Signature,
    Violated,
)
from headcount.core.source_locations import NAME, TEXT, begun_by_torch, line_here, lines_of
from headcount.core.values import dtype_name
from headcount.core.verdict import Diagnosis
from headcount.rank.arguments import called, running_call

if TYPE_CHECKING:
    from headcount.rank.requests import Deferred, Gated, Request

__all__ = [
    "ForbiddenCall",
    "EVENTS",
    "GROUPS",
    "OPERATIONS",
    "REMARKS",
    "ReceiveWatcher",
    "Recorder",
    "TensorSnapshots",
    "checksum",
    "refusal",
]


# Contents of tensors, for replays. ------------------------------------------------
#
# Small tensors are watched: the arguments of a call, those that messages are sent from or received
# into, and the result.  Whenever the rank communicates, it reports those that have changed, so that
# a replay can show the program's own data moving, including sums made in place.


class TensorSnapshots:
    """The small tensors that are watched, and their last contents.

    Args:
        emit: takes an event, as the recorder's does.
        largest: number of elements of the largest memory that is watched.
    """

    def __init__(self, emit: Callable[[Event, bool], None], largest: int) -> None:
        self._emit = emit
        self._largest = largest
        # by address; a view of the whole memory also keeps it from being freed,
        # so that no other tensor gets the same address
        self._watched: dict[int, torch.Tensor] = {}
        self._last: dict[int, list[float]] = {}
        self._lock = threading.Lock()

    def hold(self, role: str, tensors: Iterable[torch.Tensor], place: int = 0) -> None:
        """Report tensors as the result, or as the argument at this place, and watch them."""
        for tensor in tensors:
            if self._watch(tensor):
                buffer, offset = tensor.untyped_storage().data_ptr(), int(tensor.storage_offset())
                self._emit(Held(role, buffer, offset, tensor.numel(), place), False)
        self.look()

    def look(self, tensor: torch.Tensor | None = None) -> None:
        """Report all watched memory that has changed, after adding ``tensor`` to it."""
        if tensor is not None:
            self._watch(tensor)
        with self._lock:
            for buffer, memory in self._watched.items():
                values = memory.double().tolist()
                if self._last.get(buffer) != values:
                    self._last[buffer] = values
                    self._emit(Seen(buffer, values, time.monotonic_ns()), False)

    def _watch(self, tensor: torch.Tensor) -> bool:
        """Watch a tensor if that is possible, and return whether it is."""
        plain = tensor.layout is torch.strided and tensor.device.type == "cpu"
        if not plain or tensor.dtype.is_complex or not tensor.is_contiguous():
            return False
        storage = tensor.untyped_storage()
        if not 0 < storage.nbytes() // tensor.element_size() <= self._largest:
            return False
        with self._lock:
            if storage.data_ptr() not in self._watched:
                memory = torch.empty(0, dtype=tensor.dtype).set_(storage)
                self._watched[storage.data_ptr()] = memory
        return True


# The recorder. --------------------------------------------------------------------

#: A range of memory: its first byte, and one past its last.
Span = tuple[int, int]


#: The most named places that a rank reports in one call, and groups in one world.
MARKS, GROUPS = 50_000, 64

#: The most remarks that a rank makes in one call.
REMARKS = 100

#: The most operations and events of a rank in one call that the judge follows: far above what any
#: exercise needs.
OPERATIONS, EVENTS = 40_000, 200_000


#: Of how many operations in flight every call looks whether their buffers have been written to.
_LOOKED_AT = 16

#: Seconds of one wait for the judge, after which the next begins.
_LONG = 60.0


class ForbiddenCall(RuntimeError):
    """The program called what the exercise asks the student to write."""


def refusal(kind: str, allowed: frozenset[str] | None) -> str | None:
    """Return why a collective is refused, or ``None`` if it is allowed.

    ``allowed`` holds the names of the allowed collectives; ``None`` allows all.
    """
    if allowed is None or kind in allowed:
        return None
    named = called() or kind
    also = f", or {', '.join(sorted(allowed))}" if allowed else ""
    return f"{named} is a collective, which this exercise does not allow; use send and recv{also}"


def spans(tensors: Iterable[torch.Tensor]) -> list[Span]:
    """Return the memory ranges of the tensors that are not empty."""
    return [(first := t.data_ptr(), first + size) for t in tensors if (size := t.nbytes)]


def _overlap(some: list[Span], others: list[Span]) -> bool:
    return any(a < d and c < b for a, b in some for c, d in others)


class _SpanIndex:
    """Memory ranges, kept so that one that overlaps another is found without looking at all.

    Ranges of about one length lie in a list, by their first bytes: those that overlap a range begin
    in it, or at most that length before it.
    """

    def __init__(self) -> None:
        self._counts: dict[Span, int] = {}
        self._sorted: dict[int, list[Span]] = {}

    def add(self, spans: Iterable[Span]) -> None:
        for span in spans:
            count = self._counts.get(span, 0)
            self._counts[span] = count + 1
            if not count:
                bits = (span[1] - span[0]).bit_length()
                bisect.insort(self._sorted.setdefault(bits, []), span)

    def remove(self, spans: Iterable[Span]) -> None:
        for span in spans:
            count = self._counts.pop(span) - 1
            if count:
                self._counts[span] = count
                continue
            bits = (span[1] - span[0]).bit_length()
            alike = self._sorted[bits]
            del alike[bisect.bisect_left(alike, span)]
            if not alike:
                del self._sorted[bits]

    def overlaps(self, spans: Iterable[Span]) -> bool:
        """Return whether one of the ranges overlaps one that is kept."""
        for first, end in spans:
            for bits, alike in self._sorted.items():
                at = bisect.bisect(alike, (first - (1 << bits), end))
                while at < len(alike) and alike[at][0] < end:
                    if alike[at][1] > first:
                        return True
                    at += 1
        return False


#: Bytes up to which a copy takes less time than a type of ctypes' for their number.
_SMALL = 1 << 12


def checksum(tensor: torch.Tensor) -> int:
    """Return the CRC-32 of the bytes of a contiguous tensor; of a large one without a copy."""
    if not tensor.nbytes:
        return 0
    if not tensor.is_cpu:
        tensor = tensor.cpu()
    address, size = tensor.data_ptr(), tensor.nbytes
    if size <= _SMALL:
        return zlib.crc32(ctypes.string_at(address, size))
    return zlib.crc32((ctypes.c_char * size).from_address(address))


def _owners(storage: int) -> int:
    """Return how many tensors, views included, own a storage, by its address."""
    return int(torch._C._storage_Use_Count(storage)) - _asking()


@functools.cache
def _asking() -> int:
    """Return how many owners the question itself counts."""
    alone = torch.empty(1)
    address = alone.untyped_storage()._cdata
    return int(torch._C._storage_Use_Count(address)) - 1


@dataclass(slots=True)
class _Flight:
    """An operation in flight: until it completes, the transport owns its buffers."""

    kind: str
    file: str
    line: int
    reads: list[Span]
    writes: list[Span]
    blocking: bool
    request: Request | None = None
    #: tensors that cover all of their memory, with torch's count of writes to each
    counted: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    #: the last line at which the buffers were unchanged, and the first at which they were written
    clean: int = 0
    written: int = 0

    def look(self, line: int) -> None:
        """Note whether the buffers have been written to before the call on a line."""
        if self.written:
            return
        for tensor, count in self.counted:
            if tensor._version != count:
                self.written = line
                return
        self.clean = line


def _counted(tensors: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, int]]:
    """Return the tensors with a write count of their own; a view shares that of its base."""
    return [
        (tensor, tensor._version)
        for tensor in tensors
        if tensor.layout is torch.strided
        and not tensor.is_inference()
        and tensor.nbytes == tensor.untyped_storage().nbytes() > 0
    ]


def _thread_name(ident: int) -> str:
    """Return what the program calls a thread; empty if it is none of Python's."""
    name = next((str(one.name) for one in threading.enumerate() if one.ident == ident), "")
    return _sent(name)


def _sent(name: str) -> str:
    """Return a name of the program's as it is sent: in one line, and in UTF-8."""
    return " ".join(name[:NAME].split()).encode("utf-8", "replace").decode()


@dataclass(eq=False)
class Waiting:
    """One wait of one thread; each wait is a new object, so that two waits can be told apart."""

    op: int


class ReceiveWatcher(Protocol):
    """An instrument that an adapter lets a rank tell of its receives and waits."""

    def received(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take note of the tensors that a receive is posted for."""

    def waits(self) -> None:
        """Take note that the rank begins to wait."""


@dataclass
class Recorder:
    """The recorder of a rank, through which all its recording groups report.

    Args:
        rank: global rank.
        emit: takes an event; ``flush=True`` asks that it, and all before it,
            have left the process when the call returns.
        allowed: names of the collectives that may be called; ``None`` allows all.
        strict: let ``irecv`` receive into a private buffer, which is copied to the student's
            tensor on ``wait()``, and check that a buffer is unchanged while its ``isend`` is in
            flight.  Both make mistakes show every time instead of sometimes; both cost a pass
            over the data.
        snapshots: reports the contents of small tensors, for a replay.
        subgroups: whether the rank may make groups, for which it has to open connections.
        limited: whether there are limits on how many groups and marks it reports.
        backend: what a script asks of the group that it makes next.
        description: what a script calls the group that it makes next.
    """

    rank: int
    emit: Callable[[Event, bool], None]
    allowed: frozenset[str] | None = None
    strict: bool = True
    snapshots: TensorSnapshots | None = None
    subgroups: bool = True
    limited: bool = True
    backend: str = ""
    description: str = ""
    #: an instrument that is told of receives and waits, if there is one
    watcher: ReceiveWatcher | None = None
    #: told of each collective, if replicas are checked: its kind, the group's name, its ranks, and
    #: the tensors
    met: Callable[[str, str, Sequence[int], Sequence[torch.Tensor]], None] | None = None
    #: the thread that the student's functions are called in
    main: int = field(default_factory=threading.get_ident)
    #: by thread, the operation that it waits for
    waits: dict[int, Waiting] = field(default_factory=dict)
    #: for each callback of a future that has yet to run, the operations that it waits for
    callbacks: dict[object, list[int]] = field(default_factory=dict)
    #: threads of ours, which run no code of the student's
    helpers: weakref.WeakSet[threading.Thread] = field(default_factory=weakref.WeakSet)
    _marks: int = 0
    #: how often this call has asked for a group, be it of other ranks
    groups: int = 0
    _groups: int = 0
    #: operations are numbered on from call to call, so that a late thread of an earlier call
    #: does not report an operation of this one; reports count from this call's first
    _next: int = 0
    _first: int = 0
    _flights: dict[int, _Flight] = field(default_factory=dict)
    #: what the operations in flight read, and what they write
    _read: _SpanIndex = field(default_factory=_SpanIndex)
    _written: _SpanIndex = field(default_factory=_SpanIndex)
    #: operations that failed; their requests stay alive, as the transport may still use them
    _lost: list[_Flight] = field(default_factory=list)
    _unresolved: dict[int, Deferred | Gated] = field(default_factory=dict)
    #: how many of these each group and tag has behind which receives must queue
    _queues: Counter[tuple[str, int] | None] = field(default_factory=Counter)
    _outside: set[Outside] = field(default_factory=set)
    _remarks: set[Remarked] = field(default_factory=set)
    #: tensors that are written to and may die with the call that writes to them, by the identity
    #: of the reference: references to living tensors are equal as their tensors are, element by
    #: element
    _mortal: dict[int, weakref.ref[torch.Tensor]] = field(default_factory=dict)
    _unsaid: list[tuple[str, str, int]] = field(default_factory=list)
    _told: queue.Queue[bytes] = field(default_factory=queue.Queue)
    #: by thread, the number of the batch whose messages it begins
    _batches: dict[int, int] = field(default_factory=dict)
    _last_batch: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def now(self) -> int:
        """Return the time of an event that is reported now, in nanoseconds."""
        return time.monotonic_ns()

    def begin(self, allowed: frozenset[str] | None, strict: bool, watched: int = 0) -> None:
        """Start a new trace for a new case, watching tensors of up to ``watched`` elements."""
        self.allowed, self.strict = allowed, strict
        self.snapshots = TensorSnapshots(self.emit, watched) if watched else None
        self._first, self._marks, self.groups, self.watcher = self._next, 0, 0, None
        for op in list(self._flights):
            self._land(op)
        self._lost.clear()
        self._unresolved.clear()
        self._queues.clear()
        self._outside.clear()
        self._remarks.clear()
        self._mortal.clear()
        self._unsaid.clear()
        self.callbacks.clear()

    def require_allowed(self, kind: str) -> None:
        """Raise :class:`ForbiddenCall`, and report it, unless ``kind`` is allowed."""
        message = refusal(kind, self.allowed)
        if message is not None:
            self.violated(Diagnosis.FORBIDDEN_CALL, message)
            raise ForbiddenCall(message)

    def require_subgroups(self) -> None:
        """Raise :class:`ForbiddenCall`, and report it, unless groups may be made."""
        if not self.subgroups:
            message = "new_group is not allowed in this exercise; use the default group"
            self.violated(Diagnosis.FORBIDDEN_CALL, message)
            raise ForbiddenCall(message)

    def violated(
        self,
        diagnosis: Diagnosis,
        message: str,
        op: int | None = None,
        kinds: Sequence[str] = (),
    ) -> None:
        """Report that this rank broke a rule, at the line of the student's that is running.

        A callback of the transport's runs no such line; then the line is the first one at which
        the buffers of operation ``op`` had been written to, or the one that began it.  Operations
        of these ``kinds`` race for a buffer.
        """
        file, line, _ = line_here()
        if not file and op in self._flights:
            flight = self._flights[op]
            file, line = flight.file, flight.written or flight.line
        event = Violated(
            diagnosis.value, message[:TEXT], file, line, self.now(), [kind[:NAME] for kind in kinds]
        )
        self.emit(event, True)

    def outside(self, function: str) -> None:
        """Report a call on a group that this rank is not in, once for each line."""
        file, line, _ = line_here()
        call = Outside(function, file, line)
        if call not in self._outside:
            self._outside.add(call)
            self.emit(call, True)

    def remark(self, text: str, file: str, line: int) -> None:
        """Report what breaks no rule and is probably a mistake, once for each line and text."""
        remark = Remarked(text[:TEXT], file, line)
        with self._lock:
            if remark in self._remarks or len(self._remarks) == REMARKS:
                return
            self._remarks.add(remark)
        self.emit(remark, True)

    def writes_to(self, tensor: torch.Tensor, ours: torch.Tensor | None = None) -> bool:
        """Remark it if a call writes to a new tensor that dies with the call, so that it is lost.

        Returns whether it has to be watched for that, until the call ends.

        Args:
            tensor: the tensor that the program has given.
            ours: the recording group's own view of it.
        """
        found = running_call(tensor)
        if found is None:
            return False
        site, copied = found
        file, line, _ = line_here()
        storage = tensor.untyped_storage()._cdata
        view = None if ours is None else weakref.ref(ours)

        def died(reference: weakref.ref[torch.Tensor]) -> None:
            self._mortal.pop(id(reference), None)
            owners = 2 if view is not None and view() is not None else 1
            if site.is_running and _owners(storage) == owners:
                text = (
                    f"{site.function} writes to {copied}, and that dies with the call: what was"
                    " written is lost. Give it a tensor that has a name, and then put that where it"
                    f" belongs{copied.mend}"
                )
                # said later: a tensor may die anywhere, also inside a report
                self._unsaid.append((text, file, line))

        reference = weakref.ref(tensor, died)
        self._mortal[id(reference)] = reference
        return True

    def forked(self) -> None:
        """Take note that this is a copy in another process, in which no thread holds the lock."""
        self._lock = threading.RLock()

    def report_remarks(self) -> None:
        """Make the remarks that could not be made when they were due."""
        while self._unsaid:
            self.remark(*self._unsaid.pop(0))

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
        signatures: Sequence[Signature] = (),
        deferred: Deferred | Gated | None = None,
        limit: int = 0,
        here: tuple[str, int, bool] | None = None,
        shapes: Sequence[Sequence[int]] = (),
        at_once: bool = False,
    ) -> int:
        """Report an operation before it is handed to the transport; return its number.

        ``measure`` is the tensor of a message, whose size and dtype both ends must agree on, or
        the tensor of a collective that the trace shows.  ``signatures`` are what the ranks of a
        collective must agree on, and ``shapes`` those of the tensors that are alike on all of
        them.  ``limit`` is the number of milliseconds after which a
        blocking call gives up.  ``here`` is the result of :func:`line_here`, if the
        caller has it already.  ``at_once`` says that a collective is waited for at once, so that
        one report is enough of both.
        """
        file, line, blocks = here or line_here()
        blocking = blocks or at_once
        self.report_remarks()
        if self.snapshots is not None:
            self.snapshots.look(measure)
        reads, writes = list(reads), list(writes)
        if kind == "recv" and self.watcher is not None:
            self.watcher.received(writes)
        flight = _Flight(kind, file, line, spans(reads), spans(writes), blocking)
        # where buffers are checked; what is waited for at once cannot be written to before
        if self.strict and not blocking:
            flight.counted, flight.clean = _counted([*reads, *writes]), line
        ident = threading.get_ident()
        if measure is None:
            count, nbytes, dtype, buffer, offset = 0, 0, "", 0, 0
        else:
            count, nbytes, dtype = measure.numel(), measure.nbytes, dtype_name(measure.dtype)
            buffer, offset = measure.untyped_storage().data_ptr(), int(measure.storage_offset())
        # threads report their operations one after another, in the order of their numbers
        with self._lock:
            self._look(line)
            self._check_race(flight)
            op, self._next = self._next, self._next + 1
            self._flights[op] = flight
            self._read.add(flight.reads)
            self._written.add(flight.writes)
            if deferred is not None:
                self._unresolved[op] = deferred
                self._queues[deferred.channel] += 1
            self.emit(
                Posted(
                    op - self._first, kind, peer, tag, group, count, nbytes, dtype,
                    detail[:NAME], blocking, deferred is not None,
                    file, line, self.now(), buffer, offset, list(signatures),
                    self.thread(ident), limit, not blocks and begun_by_torch(),
                    list(map(list, shapes)), self._batches.get(ident, 0),
                    "" if ident == self.main else _thread_name(ident),
                ),
                True,
            )  # fmt: skip
            if not self.limited and (error := sys.exc_info()[1]) is not None:
                self._report_handling(op, error)
        if blocking:
            self.waits[ident] = Waiting(op)  # not before the judge has been told
        return op

    def _report_handling(self, op: int, error: BaseException) -> None:
        """Report an exception that a script handles while it begins an operation.

        In a ``finally`` it is on its way, and is lost if the operation never ends.
        """
        try:
            text = f"{type(error).__name__}: {error}"
        except Exception:  # its own methods may do anything
            text = type(error).__name__
        text = text[:TEXT].encode("utf-8", "replace").decode()
        *_, (file, line, _) = [("", 0, ""), *lines_of(error.__traceback__)]
        self.emit(Handling(op - self._first, text, file, line), True)

    @contextlib.contextmanager
    def batched(self) -> Iterator[None]:
        """Report the messages that this thread begins in the context as one batch."""
        ident = threading.get_ident()
        with self._lock:
            self._last_batch += 1
            self._batches[ident] = self._last_batch
        try:
            yield
        finally:
            del self._batches[ident]

    def _land(self, op: int) -> _Flight | None:
        """Take an operation out of those in flight, if it is one."""
        flight = self._flights.pop(op, None)
        if flight is not None:
            self._read.remove(flight.reads)
            self._written.remove(flight.writes)
        return flight

    def _check_race(self, new: _Flight) -> None:
        if not (
            self._written.overlaps([*new.reads, *new.writes]) or self._read.overlaps(new.writes)
        ):
            return
        for old in self._flights.values():
            if _overlap(new.writes, old.writes + old.reads) or _overlap(new.reads, old.writes):
                self.violated(
                    Diagnosis.BUFFER_RACE,
                    f"{new.kind} uses the buffer of the {old.kind} of line {old.line},"
                    " which is still in flight; wait for that request first",
                    kinds=(new.kind, old.kind),
                )
                return

    def _look(self, line: int) -> None:
        """Note for the last buffers in flight whether they have been written to before a line.

        Thousands may be in flight: of the others it is seen when they are waited for.
        """
        if self.strict:  # nobody asks otherwise
            for flight in islice(reversed(self._flights.values()), _LOOKED_AT):
                if flight.counted:
                    flight.look(line)

    def waited_at_once(self, op: int) -> bool:
        """Return whether the call that began ``op`` also waits for it."""
        return self._flights[op].blocking

    def written(self, op: int) -> bool:
        """Return whether torch has counted a write to the buffers of ``op``."""
        flight = self._flights.get(op)
        if flight is None:
            return False
        flight.look(line_here()[1])
        return bool(flight.written)

    def raced(self, op: int) -> None:
        """Report that the buffers of ``op`` were written to while it was in flight."""
        kind, where = "operation", ""
        flight = self._flights.get(op)
        if flight is not None:
            kind = flight.kind
            if flight.written:
                where = (
                    f", after the call on line {flight.clean} and before the one on line"
                    f" {flight.written}"
                )
        self.violated(
            Diagnosis.BUFFER_RACE,
            f"a buffer was changed while its {kind} was in flight{where}; wait for the request"
            " before writing to the tensor",
            op,
            (kind,),
        )

    def hold(self, op: int, request: Request) -> None:
        """Keep a request alive while its buffers are in flight."""
        self._flights[op].request = request

    def _tell(self, event: Callable[..., Event], op: int, *rest: Any, flush: bool = True) -> None:
        """Report about an operation, unless an earlier call began it."""
        if op >= self._first:
            self.emit(event(op - self._first, *rest), flush)

    def awaited_by_callbacks(self) -> list[list[int]]:
        """Return, for each callback that has yet to run, the operations that it waits for."""
        return [[op - self._first for op in ops] for ops in self.callbacks.values()]

    def gated(self) -> list[int]:
        """Return the operations in flight, if all are ones that the transport has yet to learn of.

        Otherwise, and if there are none, the list is empty.
        """
        with self._lock:
            flights, unresolved = list(self._flights), set(self._unresolved)
        return [op - self._first for op in flights] if unresolved.issuperset(flights) else []

    @property
    def posted(self) -> int:
        """The number of operations that this call has begun."""
        return self._next - self._first

    def thread(self, ident: int) -> int:
        """Return the number of a thread in reports; 0 is the one that the function runs in."""
        return 0 if ident == self.main else ident

    def blocked(self, op: int, limit: int = 0) -> None:
        """Report that this thread now waits for ``op``, unless the post has reported it."""
        ident = threading.get_ident()
        if self.watcher is not None:
            self.watcher.waits()
        flight = self._flights.get(op)
        if flight is not None and flight.blocking:
            flight.blocking = False
            return
        file, line, _ = line_here()
        with self._lock:
            self._look(line)
        self._tell(Blocked, op, file, line, self.now(), self.thread(ident), limit)
        self.waits[ident] = Waiting(op)  # not before the judge has been told

    def resumed(self) -> None:
        """Note that this thread no longer waits, after the event with the reason."""
        self.waits.pop(threading.get_ident(), None)

    def expired(self, op: int) -> None:
        """Report that this thread has stopped waiting for ``op`` at its time limit."""
        self.resumed()
        self._tell(Expired, op, self.thread(threading.get_ident()), self.now())

    def in_flight(self, op: int) -> bool:
        """Return whether ``op`` has not been seen to complete or fail yet."""
        return op in self._flights

    def polled(self, op: int) -> None:
        """Report that the rank asks whether ``op`` is complete, and that it is not."""
        self._tell(Polled, op, self.now())

    def done(self, op: int) -> None:
        """Report that the rank has seen ``op`` complete; leaves with the next event."""
        with self._lock:
            self._land(op)
        self._tell(Completed, op, self.now(), flush=False)
        if self.snapshots is not None:
            self.snapshots.look()

    def mark(self, text: str) -> None:
        """Report that the rank is at a named place; leaves with the next event.

        Raises:
            RuntimeError: the call has reported too many.
        """
        self._marks += 1
        if self.limited and self._marks > MARKS:
            raise RuntimeError(f"mark is called more than {MARKS:,} times in one call")
        self.emit(Marked(text[:NAME], self.now()), False)

    def pause(self) -> bytes:
        """Wait until the judge lets this rank go on, and return what it tells then, packed."""
        self.emit(Paused(self.now()), True)
        # a wait with a time limit, so that the thread counts as one that may act
        while True:
            with suppress(queue.Empty):
                return self._told.get(timeout=_LONG)

    def go_on(self, value: bytes) -> None:
        """Let the thread that has paused go on."""
        self._told.put(value)

    def grouped(self, name: str, members: list[int]) -> None:
        """Report a group that the rank is in.

        Raises:
            RuntimeError: the rank is in too many groups, or the name is too long.
        """
        if len(name) > NAME:
            raise RuntimeError(f"a group's name has {NAME:,} characters at most, not {len(name):,}")
        # the default group is that of a new world
        self._groups = 1 if name == WORLD else self._groups + 1
        if self.limited and self._groups > GROUPS:
            raise RuntimeError(
                f"a rank can be in {GROUPS} groups, and this is one more; each holds connections"
                " and memory: make a group once, and use it again"
            )
        self.emit(Grouped(name, members, self.backend, _sent(self.description)), False)

    def failed(self, op: int) -> None:
        """Report that the transport gave up on ``op``; its buffers are the program's again."""
        with self._lock:
            flight = self._land(op)
            if flight is not None:
                self._lost.append(flight)
        self._tell(Failed, op, self.now())

    def refused(self, op: int) -> None:
        """Report that the transport did not take ``op``, and so not its buffers."""
        self.resumed()
        with self._lock:
            self._land(op)
        self.failed(op)

    def must_defer(self, wildcard: bool, group: str, tag: int) -> bool:
        """Return whether a receive has to wait for the judge to name its source.

        A wildcard has to, and so has every receive posted behind one on the same tag, since the
        transport would not keep their order.
        """
        with self._lock:
            return wildcard or (group, tag) in self._queues

    def resolve(self, op: int, source: int) -> None:
        """Start the deferred operation ``op``, which the judge has resolved; see ``Resolution``."""
        # under the lock, so that a receive that no longer has to queue behind this one is still
        # handed to the transport after it
        with self._lock:
            deferred = self._unresolved.get(self._first + op)
            if deferred is not None:
                deferred.resolve(source)
                del self._unresolved[self._first + op]
                self._queues[deferred.channel] -= 1
                if not self._queues[deferred.channel]:
                    del self._queues[deferred.channel]
        # without the lock: callbacks settle requests, and a thread that settles one of these
        # reports that under the lock
        if deferred is not None:
            deferred.run_callbacks()
