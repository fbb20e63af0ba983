"""The judge's side of a trace: it matches sends with receives as they are posted.

Matching follows MPI's rules (MPI 4.1, section 3.5): messages between one pair
of ranks on one tag and group do not overtake, and a receive takes the first
message that fits.  A wildcard receive fits the message of any rank; which one
it gets is the matcher's choice, so that a program that depends on the order of
arrival fails reliably.  Once both ends of a message are known their sizes and types
are compared, before the transport can abort or misread.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections import defaultdict, deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import attrgetter
from typing import Any, Protocol

from headcount.core.events import (
    ANY,
    WORLD,
    Blocked,
    Completed,
    Entered,
    Event,
    Expired,
    Failed,
    Grouped,
    Handling,
    Held,
    Inspected,
    Left,
    Marked,
    Outside,
    Polled,
    Posted,
    Remarked,
    Replicas,
    Same,
    Seen,
    Signature,
    TookSet,
    Violated,
)
from headcount.core.verdict import (
    Diagnosis,
    Failure,
    Grade,
    Hang,
    HangKind,
    Site,
    counted,
    ranks_text,
)
from headcount.trace.replicas import ReplicaComparison, SameValues
from headcount.trace.trace import CallSpan, Operation, PauseSpan, Trace
from headcount.trace.wait_state import Awaited

__all__ = [
    "CollectiveCall",
    "Follower",
    "MessageMatcher",
    "Resolution",
    "disagreement",
    "misfit",
]


# Agreement of two ranks: the ends of a message, the calls of a collective. --------


def misfit(send: Operation, receive: Operation) -> Failure | None:
    """Return why a message does not fit its receive, or ``None``."""
    if (send.dtype, send.count) == (receive.dtype, receive.count):
        return None
    route = (
        f"rank {send.rank} sends {{}} at {send.site},"
        f" rank {receive.rank} receives {{}} at {receive.site}"
    )
    if send.dtype != receive.dtype:
        diagnosis, text = Diagnosis.DTYPE_MISMATCH, route.format(send.dtype, receive.dtype)
    else:
        diagnosis, text = (
            Diagnosis.SIZE_MISMATCH,
            route.format(counted(send.count, "element"), f"into {receive.count:,}"),
        )
    return Failure(diagnosis, text, receive.rank, receive.site)


class CollectiveCall(Protocol):
    """The parts of a rank's call of a collective that other ranks must agree with."""

    rank: int
    kind: str
    peer: int
    detail: str
    signatures: Sequence[Signature]
    site: Site
    thread_name: str


def _call_text(op: CollectiveCall) -> str:
    details = [f"root {op.peer}"] if op.peer != ANY else []
    details += [op.detail] if op.detail else []
    inside = f" ({', '.join(details)})" if details else ""
    thread = f" in its thread {op.thread_name}" if op.thread_name else ""
    return f"rank {op.rank} calls {op.kind}{inside} at {op.site}{thread}"


def disagreement(
    one: CollectiveCall, other: CollectiveCall, members: Sequence[int]
) -> Failure | None:
    """Return why two calls cannot be of the same collective, or ``None``.

    ``one`` is the call of the lower rank; ``members`` are the global ranks of the group, indexed
    by rank in it.
    """
    if (one.kind, one.peer, one.detail) != (other.kind, other.peer, other.detail):
        diagnosis = Diagnosis.ORDER_MISMATCH
        text = f"{_call_text(one)}, while {_call_text(other)}"
        if one.kind == other.kind == "new_group":
            text += "; every rank has to make the same groups in the same order"
        return Failure(diagnosis, text, other.rank, other.site)
    if len(one.signatures) != len(other.signatures):
        text = f"{one.kind} of {len(one.signatures)} tensors on rank {one.rank} ({one.site}), of"
        text += f" {len(other.signatures)} on rank {other.rank} ({other.site})"
        return Failure(Diagnosis.SIZE_MISMATCH, text, other.rank, other.site)
    for mine, theirs in zip(one.signatures, other.signatures, strict=True):
        if mine == theirs and mine.even is not None:
            continue  # by far the most frequent case, in which the places of ranks do not matter
        for ends in (((one, mine), (other, theirs)), ((other, theirs), (one, mine))):
            failure = _mismatched_elements(*ends, members)
            if failure is not None:
                if mine.even is not None and theirs.even is not None:
                    failure = f"{_amount(one, mine)}, of {_amount(other, theirs, again=True)}"
                if mine.dtype != theirs.dtype:
                    return Failure(Diagnosis.DTYPE_MISMATCH, failure, other.rank, other.site)
                whole = one.kind not in _BY_RANK
                sizes = tuple(i for i in (mine.even, theirs.even) if i is not None and whole)
                return Failure(
                    Diagnosis.SIZE_MISMATCH, failure, other.rank, other.site, sizes=sizes
                )
    return None


#: Different calls with which one more is compared.
_KINDS = 16


def _entered_differently(
    failure: Failure, calls: Mapping[int, Operation], members: Sequence[int]
) -> Failure:
    """Return the failure of calls that do not match, with all ranks that have made them.

    The ranks whose call the fewest have made come first: all of them, where nobody is fewer.
    """
    kinds: list[list[Operation]] = []
    for _, call in sorted(calls.items()):
        # a thousand ranks may all give different sizes
        alike = (one for one in kinds[:_KINDS] if disagreement(one[0], call, members) is None)
        kind = next(alike, None)
        if kind is None:
            kinds.append(kind := [])
        kind.append(call)
    kinds.sort(key=len)
    ranks = [[call.rank for call in kind] for kind in kinds]
    few = sorted(rank for kind in ranks for rank in kind if len(kind) == len(ranks[0]))
    many = tuple(sorted(calls.keys() - {*few}))
    sides = tuple((tuple(who), kind[0].site) for who, kind in zip(ranks, kinds, strict=True))
    hang = Hang(HangKind.ENTERED_DIFFERENTLY, Grade.ESTABLISHED, tuple(few), many)
    return replace(failure, hang=hang, sides=sides)


def _mismatched_elements(
    end: tuple[CollectiveCall, Signature],
    other_end: tuple[CollectiveCall, Signature],
    members: Sequence[int],
) -> str | None:
    """Return how what one rank gives differs from what the other takes, or ``None``."""
    (giver, given), (taker, taken) = end, other_end
    gives = given.gives_to(members.index(taker.rank))
    takes = taken.takes_from(members.index(giver.rank))
    # where only one end counts, as between ranks other than the root, nothing can differ
    if gives is None or takes is None or (gives, given.dtype) == (takes, taken.dtype):
        return None
    return (
        f"in {giver.kind}, rank {giver.rank} gives {counted(gives, f'{given.dtype} element')} to"
        f" rank {taker.rank} ({giver.site}), and rank {taker.rank} takes"
        f" {counted(takes, f'{taken.dtype} element')} from rank {giver.rank} ({taker.site})"
    )


def _amount(call: CollectiveCall, signature: Signature, again: bool = False) -> str:
    """Return the number of elements of a call, where it is a single one."""
    what = "" if again else f"{call.kind} of "
    each = " per rank" if call.kind in _BY_RANK else ""
    elements = counted(signature.even or 0, f"{signature.dtype} element")
    return f"{what}{elements}{each} on rank {call.rank} ({call.site})"


def _shapes_that_differ(calls: Mapping[int, Operation]) -> str:
    """Return the remark on a collective whose ranks give tensors of one size in several shapes.

    It is empty where the shapes are one, and where the sizes differ, too: that is a mismatch, or
    each rank has a share of its own, as in a reduce-scatter of uneven shares.
    """
    shapes: dict[tuple[Sequence[int], ...], list[int]] = {}
    for rank in sorted(calls):
        shapes.setdefault(tuple(map(tuple, calls[rank].shapes)), []).append(rank)
    sizes = {tuple(map(math.prod, several)) for several in shapes}
    if len(shapes) < 2 or len(sizes) > 1 or any(op.doomed for op in calls.values()):
        return ""
    parts = []
    for several, ranks in shapes.items():
        sites = dict.fromkeys(str(calls[rank].site) for rank in ranks)
        verb = "have" if len(ranks) > 1 else "has"
        what = " and ".join(map(_shape, several)) or "none"
        parts.append(f"{ranks_text(sorted(ranks))} {verb} {what} ({', '.join(sites)})")
    kind = next(iter(calls.values())).kind
    return (
        f"{kind} takes tensors of different shapes: {'; '.join(parts)}. Elements are combined in"
        " the order in which they lie in memory, whatever their index: gloo lets that pass, and"
        " TORCH_DISTRIBUTED_DEBUG=DETAIL refuses it; give all ranks' tensors one shape"
    )


def _shape(shape: Sequence[int]) -> str:
    return f"shape ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


#: Collectives that give each rank, or take from it, a part of its own.
_BY_RANK = frozenset({"all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"})

# The matcher. ---------------------------------------------------------------------

#: Group, tag and destination of messages.
Mailbox = tuple[str, int, int]


class _Queues(dict[Mailbox, dict[int, deque[Operation]]]):
    """Operations that wait to be matched, by mailbox and source, in the order of their posts.

    A program may use any number of tags, each once: of a queue that is empty nothing is kept.
    """

    def put(self, box: Mailbox, source: int, op: Operation) -> None:
        """Add an operation as the last of its queue."""
        self.setdefault(box, {}).setdefault(source, deque()).append(op)

    def first(self, box: Mailbox, source: int) -> Operation | None:
        """Return the first operation of a queue, if there is one."""
        queues = self.get(box)
        queue = queues.get(source) if queues else None
        return queue[0] if queue else None

    def remove(self, box: Mailbox, source: int, op: Operation) -> None:
        """Remove an operation, which is nearly always the first of its queue."""
        queues = self[box]
        queues[source].remove(op)
        if not queues[source]:
            del queues[source]
        if not queues:
            del self[box]


#: The order in which wildcards get their messages: by rank, and then as they were posted.
_place = attrgetter("rank", "number")

#: A place, of which one object is kept: nearly all operations are of a few lines.
_site = functools.lru_cache(maxsize=4096)(Site)

#: How many broken rules of one call are kept.
_ENOUGH = 1000


@dataclass(frozen=True)
class Resolution:
    """The answer that a deferred operation ``op`` of a rank waits for.

    A receive has been matched with a send of ``source``.  A collective has been called by all
    members; then ``source`` has no meaning.
    """

    rank: int
    op: int
    source: int


@dataclass
class _Group:
    """A process group: its members, and the collectives that each has called.

    ``agreed`` is the number of calls before the first one that does not match on all ranks, and
    ``open`` holds those that a member has yet to make or that do not match, and those that make a
    group.  ``backend`` is what a script has asked of it, and ``description`` what it calls it.
    """

    members: tuple[int, ...]
    backend: str = ""
    description: str = ""
    agreed: float = math.inf
    calls: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    open: dict[int, dict[int, Operation]] = field(default_factory=dict)


class Follower(Protocol):
    """Follows a run of any length, of which only the last operations are kept."""

    @property
    def keeps(self) -> int:
        """How many operations of a rank are kept, besides those that are not complete."""

    def posted(self, op: Operation) -> None:
        """Take note that an operation has begun."""

    def done(self, op: Operation) -> None:
        """Take note that its rank has seen an operation complete."""

    def called(self, calls: Mapping[int, Operation]) -> None:
        """Take note that all members of a group have made a collective call, and agree."""


class _RecentOperations(Sequence[Operation]):
    """The operations of a rank by number, of which complete ones are forgotten after a while."""

    def __init__(self) -> None:
        self._kept: dict[int, Operation] = {}
        self._count = 0
        #: how many may be kept before it is looked which are complete
        self._full = 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        return self._kept[number]

    def has(self, number: int) -> bool:
        """Return whether an operation has not been forgotten."""
        return number in self._kept

    def __iter__(self) -> Iterator[Operation]:
        return iter(list(self._kept.values()))

    def append(self, op: Operation) -> None:
        self._kept[self._count] = op
        self._count += 1

    def forget(self, keeps: int) -> None:
        """Forget the oldest operations that are complete, once there are twice as many."""
        if len(self._kept) < max(2 * keeps, self._full):
            return
        over = len(self._kept) - keeps
        settled = [n for n, op in self._kept.items() if op.done is not None and op.matched]
        for number in settled[:over]:
            del self._kept[number]
        self._full = 2 * len(self._kept)


class MessageMatcher:
    """Everything that ranks have posted so far, and what matches.

    Args:
        size: number of ranks.
        stored: the keys of the store that have values.
        late: ranks that are let in late, so that others may give up on them.
        before: knows the groups that an earlier call has made.
        follower: follows a person's own script, which may run for any time.

    Attributes:
        size: number of ranks.
        operations: the operations by rank, in program order.
        waits: by rank and thread, what the thread waits for now; thread 0 is the one that the
            function was called in.
        inspected: by rank, what its other threads do, if the rank has reported that since its
            last event; otherwise ``None``.
        polling: by rank, the operations that it asks about repeatedly, until its next event.
        broken: by rank, the groups on which it has given up a message; gloo closes their
            connections.
        ended: ranks that have returned or whose process is gone.
        stored: the keys of the store that have values.
        killed: ranks that the judge has killed; they are among the ended ones when they are gone.
        late: ranks that are let in late.
        groups: the process groups, by name.
        tensor_snapshots: by rank, the reported contents of its tensors.
        call_spans: by rank, when it was in the function.
        marks: by rank, the named places that it has passed.
        pauses: by rank, its pauses that are over.
        ready: the first waiting wildcard of each mailbox that has a message for it, lowest rank
            first.
        choices: the wildcards that have been given a message, in that order; not of a script.
        is_script: whether the ranks run a person's own script, and not a function.
    """

    def __init__(
        self,
        size: int,
        stored: Container[str] = (),
        late: Collection[int] = (),
        before: MessageMatcher | None = None,
        follower: Follower | None = None,
    ) -> None:
        self.size = size
        self.is_script = follower is not None
        self._follower = follower
        self.operations: list[list[Operation]] | list[_RecentOperations]
        self._recent = [_RecentOperations() for _ in range(size if follower is not None else 0)]
        self.operations = self._recent or [list[Operation]() for _ in range(size)]
        self.waits: list[dict[int, Awaited]] = [{} for _ in range(size)]
        self.inspected: list[Inspected | None] = [None] * size
        self.polling: dict[int, set[int]] = {}
        self.broken: list[set[str]] = [set() for _ in range(size)]
        self.ended: set[int] = set()
        self.stored = stored
        self.killed: set[int] = set()
        self.late = frozenset(late)
        self.groups: dict[str, _Group] = {WORLD: _Group(tuple(range(size)))}
        if before is not None:
            self.groups |= {name: _Group(one.members) for name, one in before.groups.items()}
        self.tensor_snapshots: list[list[Held | Seen]] = [[] for _ in range(size)]
        self.call_spans = [CallSpan()] * size
        #: by rank, how often it has called new_group as all ranks have to
        self.groups_made: dict[int, int] = {}
        self.marks: list[list[Marked]] = [[] for _ in range(size)]
        self.pauses: list[list[PauseSpan]] = [[] for _ in range(size)]
        self.choices: list[Operation] = []
        self._closed: int | None = None
        self._sends, self._receives, self._wildcards = _Queues(), _Queues(), _Queues()
        self.ready: list[Operation] = []
        self._ready_in: dict[Mailbox, Operation] = {}
        self._resolutions: list[Resolution] = []
        self._failures: list[Failure] = []
        self.replicas = ReplicaComparison(size)
        self._same = SameValues()
        self._outside: dict[Outside, set[int]] = {}
        self._remarks: dict[Remarked, set[int]] = {}
        self._sets_taken: dict[Site, None] = {}
        #: by rank, the exception that it handles in its last operation
        self.handling: dict[int, Handling] = {}
        self._shape_remarks: dict[str, None] = {}
        self._agree = True

    @property
    def failures(self) -> list[Failure]:
        """The rules that have been broken so far, lowest rank first."""
        if self._agree and not self._failures:
            return []  # as in most looks, of which there is one after every message
        found = self._failures + ([] if self._agree else self._disagreements())
        return sorted(found, key=lambda f: -1 if f.rank is None else f.rank)

    # Events. -----------------------------------------------------------------

    def take(self, rank: int, event: Event) -> None:
        """Add an event that ``rank`` reports.

        What it has said of its other threads holds until its next event, and what it asks about
        until its next one of another kind.  No event is of two kinds: their order has no meaning.
        """
        if type(event) is Inspected:
            self.inspected[rank] = event
            return
        self.inspected[rank] = None
        if type(event) is not Polled:
            self.polling.pop(rank, None)
        match event:
            case Posted():
                self.handling.pop(rank, None)
                self._post(rank, event)
            case Completed() | Blocked() | Failed():
                # a program may wait once more for what is complete, and forgotten
                if not self._is_forgotten(rank, event.op):
                    self._take_change(self.operations[rank][event.op], event)
            case Polled(op=op):
                self.polling.setdefault(rank, set()).add(op)
            case Expired(thread=thread):
                self.waits[rank].pop(thread, None)
            case Grouped(name=name, members=members):
                # their calls of new_group show whether the members agree
                group = self.groups.setdefault(name, _Group(tuple(members)))
                group.backend = event.backend or group.backend
                group.description = event.description or group.description
            case Violated():
                self._violated(rank, event)
            case Outside():
                self._outside.setdefault(event, set()).add(rank)
            case Handling():
                self.handling[rank] = event
            case Remarked():
                self._remarks.setdefault(event, set()).add(rank)
            case Replicas():
                self.replicas.take(rank, event)
            case Same():
                if (failure := self._same.take(rank, event)) and len(self._failures) < _ENOUGH:
                    self._failures.append(failure)
            case TookSet(file=file, line=line):
                self._sets_taken[Site(file, line)] = None
            case Entered(time=time):
                self.call_spans[rank] = CallSpan(time)
            case Left(time=time, raised=raised, groups=groups):
                self.groups_made[rank] = groups
                how = "raised" if raised else "returned"
                self.call_spans[rank] = self.call_spans[rank].ended_at(time, how)
            case Marked():
                self.marks[rank].append(event)
            case Held() | Seen():
                self.tensor_snapshots[rank].append(event)

    def _take_change(self, op: Operation, event: Blocked | Completed | Failed) -> None:
        """Take note that a rank waits for an operation of its own, or does so no longer."""
        match event:
            case Completed():
                op.done = event.time
                self._unblock(op.rank, op)
                if self._follower is not None:
                    self._follower.done(op)
                    self._recent[op.rank].forget(self._follower.keeps)
            case Blocked():
                site = _site(event.file, event.line)
                self._block(op, event.time, site, event.thread, event.limit)
            case Failed():
                op.failed, op.given_up = True, event.time
                if op.is_message:
                    self.broken[op.rank].add(op.group)
                self._unblock(op.rank, op)

    def end(self, rank: int, gone: int | None = None) -> None:
        """Record that a rank has returned or raised, or that its process ended at ``gone``."""
        self.ended.add(rank)
        if gone is not None:
            self.call_spans[rank] = self.call_spans[rank].ended_at(gone, "gone")
        self.waits[rank].clear()
        self.inspected[rank] = None

    def kill(self, rank: int) -> None:
        """Record that the judge kills a rank; it has ended when its process is gone."""
        self.killed.add(rank)

    def pause(self, rank: int, span: PauseSpan) -> None:
        """Record a pause of a rank that is over."""
        self.pauses[rank].append(span)

    def close(self, time: int) -> None:
        """Record when the recording stops, in nanoseconds of the monotonic clock."""
        self._closed = time

    def _is_forgotten(self, rank: int, number: int) -> bool:
        return bool(self._recent) and not self._recent[rank].has(number)

    def _block(self, op: Operation, time: int, site: Site, thread: int, limit: int) -> None:
        op.blocked, op.blocked_site, op.limit = time, site, limit
        if op.done is None and not op.failed:
            # otherwise the callback of a future saw it complete before this thread began to wait
            self.waits[op.rank][thread] = Awaited(op, site, limit)

    def _unblock(self, rank: int, op: Operation) -> None:
        held = self.waits[rank]
        for thread, awaited in list(held.items()):
            if awaited.op is op:
                del held[thread]

    def _violated(self, rank: int, event: Violated) -> None:
        site = Site(event.file, event.line)
        message = f"rank {rank}, {site}: {event.message}"
        if len(self._failures) < _ENOUGH:
            found = Failure(
                Diagnosis(event.diagnosis), message, rank, site, race=tuple(event.kinds)
            )
            self._failures.append(found)

    def _post(self, rank: int, event: Posted) -> None:
        op = Operation(
            rank=rank,
            number=event.op,
            kind=event.kind,
            peer=event.peer,
            tag=event.tag,
            group=event.group,
            count=event.count,
            nbytes=event.nbytes,
            dtype=event.dtype,
            detail=event.detail,
            site=_site(event.file, event.line),
            posted=event.time,
            buffer=event.buffer,
            offset=event.offset,
            signatures=event.signatures,
            shapes=event.shapes,
            deferred=event.deferred,
            wildcard=event.kind == "recv" and event.peer == ANY,
            by_torch=event.by_torch,
            batch=event.batch,
            thread=event.thread,
            thread_name=event.thread_name,
        )
        self.operations[rank].append(op)
        if self._follower is not None:
            self._follower.posted(op)
        if event.blocking:
            self._block(op, event.time, op.site, event.thread, event.limit)
        else:
            self.waits[rank].pop(event.thread, None)
        if op.wildcard:
            box = (op.group, op.tag, rank)
            self._wildcards.put(box, ANY, op)
            self._note_ready(box)
        elif op.is_message:
            sends = op.kind == "send"
            box, source = (op.group, op.tag, op.peer if sends else rank), rank if sends else op.peer
            (self._sends if sends else self._receives).put(box, source, op)
            self._match(box, [source])
        else:
            self._call(op)

    # Messages. ---------------------------------------------------------------

    def _match(self, box: Mailbox, sources: Iterable[int]) -> None:
        """Match the receives of a mailbox from these ranks that leave no choice, in their order.

        A receive behind a wildcard has to wait, since the wildcard may take its message.
        """
        ahead = self._wildcards.first(box, ANY)
        pairs = []
        for source in sources:
            while (
                (send := self._sends.first(box, source))
                and (receive := self._receives.first(box, source))
                and (ahead is None or receive.number < ahead.number)
            ):
                self._sends.remove(box, source, send)
                self._receives.remove(box, source, receive)
                pairs.append((receive, send))
        for receive, send in sorted(pairs, key=lambda pair: pair[0].number):
            self._pair(send, receive)
        if ahead is not None or box in self._ready_in:
            self._note_ready(box)

    def _note_ready(self, box: Mailbox) -> None:
        """Note whether there is a message for the first wildcard of a mailbox."""
        first = self._wildcards.first(box, ANY) if box in self._sends else None
        before = self._ready_in.pop(box, None)
        if first is not None:
            self._ready_in[box] = first
        if first is not before:
            if before is not None:
                del self.ready[bisect.bisect_left(self.ready, _place(before), key=_place)]
            if first is not None:
                bisect.insort(self.ready, first, key=_place)

    def _pair(self, send: Operation, receive: Operation) -> None:
        send.partner, receive.partner = receive, send
        send.matched = receive.matched = True
        receive.peer = send.rank
        if receive.deferred:
            self._resolutions.append(Resolution(receive.rank, receive.number, send.rank))
        failure = misfit(send, receive)
        if failure:
            self._failures.append(failure)

    def candidates(self, receive: Operation) -> list[int]:
        """Return the ranks with a message that a wildcard could take, if it still waits."""
        box = (receive.group, receive.tag, receive.rank)
        if not receive.wildcard or receive.matched:
            return []
        return sorted(self._sends.get(box, ()))

    def resolve(self, receive: Operation, source: int) -> None:
        """Give a wildcard the first message of ``source``."""
        box = (receive.group, receive.tag, receive.rank)
        self._wildcards.remove(box, ANY, receive)
        if self._follower is None:
            self.choices.append(receive)
        send = self._sends[box][source][0]
        self._sends.remove(box, source, send)
        self._pair(send, receive)
        self._match(box, list(self._receives.get(box, ())))

    def take_resolutions(self) -> list[Resolution]:
        """Return the deferred operations that were resolved since the last call."""
        taken, self._resolutions = self._resolutions, []
        return taken

    def unreceived(self) -> list[Operation]:
        """Return the sends that no receive has matched."""
        return [op for op in self._to_complete() if op.kind == "send" and not op.matched]

    def unwaited(self) -> list[Operation]:
        """Return the requests that their rank never saw complete, although it could have waited.

        What torch itself has begun completes without the program, once all ranks have called it.
        """
        # a failed one has raised an exception, and cannot be waited for
        open_ = [op for op in self._to_complete() if op.done is None and not op.failed]
        return [op for op in open_ if not (op.by_torch and op.matched)]

    def idle(self) -> bool:
        """Return whether every rank has ended, and every operation is complete."""
        done = all(op.done is not None for ops in self.operations for op in ops)
        # torch numbers the groups on each rank by itself, and goes on from there
        done = done and len({*self.groups_made.values()}) < 2
        return done and len(self.ended) == self.size and not self.unreceived()

    def _to_complete(self) -> list[Operation]:
        """Return the operations that need no rank that was killed or late; the others need not end.

        A rank that has entered late cannot know which of its messages are still waited for.
        """
        lost = self.killed | self.late
        return [op for ops in self.operations for op in ops if not lost & set(self.needed(op))]

    def needed(self, op: Operation) -> tuple[int, ...]:
        """Return the ranks without which an operation cannot be complete, its own included."""
        if op.is_message:
            return (op.rank,) if op.peer == ANY else (op.rank, op.peer)
        return self.groups[op.group].members

    # Collectives. ------------------------------------------------------------

    def _call(self, op: Operation) -> None:
        group = self.groups[op.group]
        index = group.calls[op.rank]
        group.calls[op.rank] += 1
        op.place = index
        op.callers = calls = group.open.setdefault(index, {})
        others = calls.values()
        agree = all(disagreement(other, op, group.members) is None for other in others)
        calls[op.rank] = op
        if not agree:
            self._agree = False
            group.agreed = min(group.agreed, index)
        if index >= group.agreed:
            # even if the transport goes on, its result is not what the ranks expect
            for other in calls.values():
                other.doomed = True
        if len(calls) < len(group.members):
            return
        for other in calls.values():
            other.matched = True
            if other.deferred and not other.doomed:
                self._resolutions.append(Resolution(other.rank, other.number, ANY))
        if index < group.agreed:
            if op.kind != "new_group":  # ranks that are no members may still call it
                del group.open[index]
            if remark := _shapes_that_differ(calls):
                self._shape_remarks[remark] = None
            if self._follower is not None:
                self._follower.called(calls)

    def missing(self, op: Operation) -> list[int]:
        """Return the members of its group that have not made the collective call of ``op`` yet."""
        members = self.groups[op.group].members
        return [member for member in members if member not in op.callers]

    def _disagreements(self) -> list[Failure]:
        """Return, for each group, the failure of its first call that does not match."""
        found = []
        for group in self.groups.values():
            for calls in group.open.values():
                for one, other in combinations((calls[rank] for rank in sorted(calls)), 2):
                    if failure := disagreement(one, other, group.members):
                        break
                else:
                    continue
                found.append(_entered_differently(failure, calls, group.members))
                break
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """Remarks on calls that break no rule but are probably mistakes, each said once."""
        said = []
        for call, ranks in sorted(self._outside.items(), key=lambda item: min(item[1])):
            verb = "call" if len(ranks) > 1 else "calls"
            group = "groups that they are not in" if len(ranks) > 1 else "a group that it is not in"
            said.append(
                f"{ranks_text(sorted(ranks))} {verb} {call.function} at"
                f" {Site(call.file, call.line)} on {group};"
                " torch does nothing there, and leaves the tensors as they are"
            )
        for remark, ranks in sorted(self._remarks.items(), key=lambda item: min(item[1])):
            at = f", {Site(remark.file, remark.line)}" if remark.line else ""
            said.append(f"{ranks_text(sorted(ranks))}{at}: {remark.text}")
        return (*said, *self._shape_remarks, *self._same.remarks())

    # The trace. --------------------------------------------------------------

    def trace(self) -> Trace:
        """Return the trace of all that has been reported so far."""
        return Trace(
            tuple(map(tuple, self.operations)),
            tuple(map(tuple, self.tensor_snapshots)),
            tuple(self.call_spans),
            self._closed,
            tuple(map(tuple, self.marks)),
            tuple(self.choices),
            self.warnings,
            {name: group.members for name, group in self.groups.items()},
            pauses=tuple(map(tuple, self.pauses)),
            sets_taken=tuple(self._sets_taken),
            backends={name: group.backend for name, group in self.groups.items() if group.backend},
        )
