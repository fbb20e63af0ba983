"""The trace of a finished run: its messages and calls, with ranks, times and lines."""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

from headcount.core.events import INIT, WORLD, Held, Marked, Seen, Signature
from headcount.core.verdict import Site, Traffic, Volume

__all__ = [
    "ALPHA",
    "BETA",
    "MAKE_GROUPS",
    "Measured",
    "Message",
    "Operation",
    "CallSpan",
    "given_elements",
    "PauseSpan",
    "Step",
    "Trace",
    "heard_from",
    "programs",
    "replay",
]


# A trace replayed in virtual time: the rounds and the seconds of an algorithm. -----
#
# A rank has one port to send and one to receive (full duplex), and computing takes
# no time.  Each rank runs its program: a post puts a message in its port's queue, a
# wait holds the rank until that message has arrived.  A message can travel once both
# ends are posted.  A sending port takes the messages that can travel in the order of
# their posts and holds on to the first until the other end is free; a receiving port
# takes, of those that ask for it, the one whose receive was posted first.
#
# The messages of one batch have no order among themselves: any of them may travel when the
# first may.  Ports with the most messages left go first; some matching of a bipartite graph
# covers all of these, so that a batch takes as long as its busiest port (König, 1916).
# Where the order of the posts is faster, as it may be around other waits, it counts.
#
# Where every message takes one unit of time, the units are rounds: a flat broadcast
# takes n − 1, a binomial one ⌈log₂ n⌉, and an all-to-all in which all ranks send to
# rank 0 first takes more rounds than one whose peers rotate.  Where a message of b
# bytes takes α + b·β, they are seconds.  This is the single-port, full-duplex model
# of Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication
# Operations in MPICH* (2005), section 3.

#: The α and β of virtual seconds where no network is named: 1 µs a message, and 10 GB/s.
ALPHA, BETA = 1e-6, 1e-10

#: A message, named by its send: rank and number of the operation.
Key = tuple[int, int]

#: One of the two ports of a rank: ``send`` or ``recv``, and the rank.
_Port = tuple[str, int]

_Item = TypeVar("_Item")

#: Messages of a replay up to which the best order of batches is looked for, in time that grows with
#: their square: a quarter of a second for so many.
_MOST_MATCHED = 1024


@dataclass(frozen=True)
class Step:
    """One step of a rank's program: ``post`` or ``wait``, for one end of a message.

    ``batch`` numbers the rank's batch that a post belongs to; 0 for none.
    """

    action: str
    end: str
    message: Key
    batch: int = 0


def replay(
    programs: Sequence[Sequence[Step]], takes: Callable[[Key], float] = lambda message: 1
) -> dict[Key, float]:
    """Return the time, from 0, at which each message begins to travel.

    Args:
        programs: the posts and waits of each rank in order; both posts of every message must
            be among them.
        takes: how long a message travels, more than 0; one unit of time if nothing is said.
    """
    posted = _Replay(programs, takes)
    posted.run()
    batched = any(step.batch for program in programs for step in program)
    if not batched or len(posted.start) > _MOST_MATCHED:
        return posted.start
    free = _Replay(programs, takes, batches=True)
    free.run()
    return min(posted, free, key=lambda one: max(one.end.values(), default=0)).start


class _Replay:
    """The state of a replay; a place is the index of a post in its rank's program.

    With ``batches``, messages of a batch travel in whatever order suits.
    """

    def __init__(
        self,
        programs: Sequence[Sequence[Step]],
        takes: Callable[[Key], float],
        batches: bool = False,
    ) -> None:
        self.programs = programs
        self.takes = takes
        self.batches = batches
        self.position = [0] * len(programs)
        self.posted: dict[Key, dict[str, tuple[int, int]]] = {}
        self.start: dict[Key, float] = {}
        self.end: dict[Key, float] = {}
        #: by rank, when its port is free again
        self.sending, self.receiving = ([0.0] * len(programs) for _ in range(2))
        #: by sending rank, the messages that can travel, first posted first
        self.ready: dict[int, list[tuple[int, Key]]] = {}

    def run(self) -> None:
        """Let all messages travel."""
        now: float = 0
        ends: list[float] = []
        while True:
            for rank in range(len(self.programs)):
                self._advance(rank, now)
            for sender, message in self._choose(now):
                queue = self.ready[sender]
                queue.remove((self.posted[message]["send"][1], message))
                end = now + self.takes(message)
                self.start[message], self.end[message] = now, end
                self.sending[sender] = self.receiving[self.posted[message]["recv"][0]] = end
                heapq.heappush(ends, end)
            while ends and ends[0] <= now:
                heapq.heappop(ends)
            if not ends:
                return
            now = ends[0]

    def _advance(self, rank: int, now: float) -> None:
        """Let a rank run until it waits for a message that has not arrived by ``now``."""
        program = self.programs[rank]
        while self.position[rank] < len(program):
            place = self.position[rank]
            step = program[place]
            if step.action == "wait":
                if self.end.get(step.message, math.inf) > now:
                    return
            else:
                ends = self.posted.setdefault(step.message, {})
                ends[step.end] = (rank, place)
                if len(ends) == 2:
                    sender, order = ends["send"]
                    bisect.insort(self.ready.setdefault(sender, []), (order, step.message))
            self.position[rank] += 1

    def _choose(self, now: float) -> list[tuple[int, Key]]:
        """Return the messages that begin to travel now, with their senders."""
        asked: dict[int, list[tuple[int, tuple[int, Key]]]] = {}
        for sender, queue in self.ready.items():
            if not queue or self.sending[sender] > now:
                continue
            for _, message in self._first_batch(sender, queue):
                receiver, place = self.posted[message]["recv"]
                if self.receiving[receiver] <= now:
                    asked.setdefault(receiver, []).append((place, (sender, message)))
        offers: dict[tuple[_Port, _Port], Key] = {}
        for receiver, asking in asked.items():
            for _, (sender, message) in self._first_batch(receiver, sorted(asking)):
                offers.setdefault((("send", sender), ("recv", receiver)), message)
        left = Counter(port for offer in offers for port in offer)
        for sender, queue in self.ready.items() if self.batches else ():
            left["send", sender] = len(queue)
            left.update(("recv", self.posted[message]["recv"][0]) for _, message in queue)
        ports = sorted(left, key=lambda port: (-left[port], port))
        return [(one[1], offers[one, other]) for one, other in _cover(offers, ports)]

    def _first_batch(
        self, rank: int, posts: Sequence[tuple[int, _Item]]
    ) -> Sequence[tuple[int, _Item]]:
        """Return the first of a rank's posts, by place, and the others of its batch."""
        program, first = self.programs[rank], posts[0]
        batch = program[first[0]].batch if self.batches else 0
        return sorted(one for one in posts if program[one[0]].batch == batch) if batch else [first]


def _cover(
    edges: Iterable[tuple[_Port, _Port]], ports: Sequence[_Port]
) -> list[tuple[_Port, _Port]]:
    """Return a matching of senders and receivers that covers the first of the ports."""
    others: dict[_Port, list[_Port]] = {port: [] for port in ports}
    for one, other in edges:
        others[one].append(other)
        others[other].append(one)
    partner: dict[_Port, _Port] = {}
    kept: set[_Port] = set()

    def cover(port: _Port, seen: set[_Port]) -> bool:
        for other in others[port]:
            if other in seen:
                continue
            seen.add(other)
            rival = partner.get(other)
            if rival is not None and not cover(rival, seen):
                if rival in kept:
                    continue
                del partner[rival]
            partner[port], partner[other] = other, port
            return True
        return False

    for port in ports:
        if port in partner or cover(port, set()):
            kept.add(port)
    return [(one, other) for one, other in partner.items() if one[0] == "send"]


# Causality: which ranks are known to have begun when a rank ends. -----------------
#
# Lamport's happened-before (*Time, Clocks, and the Ordering of Events in a
# Distributed System*, 1978): what a rank does after it has received a message
# comes after what the sender did before it sent.


def heard_from(trace: Trace) -> list[frozenset[int]]:
    """Return, for each rank, the ranks that are known to have begun when it ends.

    A chain of messages leads from each of them to the rank, so it cannot end before they have
    begun, however fast or slow any rank is.  The rank itself is among them.

    The trace may be a part of a longer one, such as the second of two calls in a row.  Messages
    that were sent before that part do not count.
    """
    moments: list[tuple[int, int, int, int, int]] = []
    for operations in trace.operations:
        for place, op in enumerate(operations):
            if op.kind == "send":
                moments.append((op.posted, 0, op.rank, op.number, place))
            elif op.kind == "recv" and op.done is not None and op.partner is not None:
                moments.append((op.done, 1, op.rank, op.number, place))
    known = [frozenset({rank}) for rank in range(trace.world_size)]
    carried: dict[tuple[int, int], frozenset[int]] = {}
    for _, received, rank, number, place in sorted(moments):
        if received:
            partner = trace.operations[rank][place].partner
            assert partner is not None
            known[rank] |= carried.get((partner.rank, partner.number), frozenset())
        else:
            carried[rank, number] = known[rank]
    return known


# The trace. ----------------------------------------------------------------------


class Measured(Protocol):
    """The numbers that a limit can be judged on."""

    @property
    def traffic(self) -> Volume:
        """The volume that was sent."""
        ...

    @property
    def max_sent_elements(self) -> int:
        """The largest number of elements that one rank sent."""
        ...

    @property
    def stranger_count(self) -> int:
        """The number of messages to ranks that are not neighbours on the ring."""
        ...


#: Kinds of operations that make a group, and carry nothing.
MAKE_GROUPS = frozenset({"new_group", INIT})


@dataclass(eq=False, slots=True)
class Operation:
    """One call into the process group, as its rank reported it.

    Attributes:
        rank: the global rank that called.
        number: its place in that rank's program order, from 0.
        kind: ``send``, ``recv``, or the name of a collective.
        peer: the other rank; −1 for a wildcard that is not matched yet; the root of a
            rooted collective.
        tag, group: the channel.
        count, nbytes, dtype: the size of the message in elements and bytes.
        detail: the reduction of a collective, or the members of a new group.
        signatures: what the rank gives to the others in a collective and takes from them.
        shapes: the shapes of its tensors in a collective in which all ranks' are alike.
        site: the student's line.
        buffer: the address of the memory of the message; views of one tensor share it.
        offset: the index of its first element in that memory.
        posted: when it was handed to the transport, in monotonic nanoseconds.
        blocked: when the rank began to wait for it, or ``None``.
        done: when the rank saw it complete, or ``None``.
        matched: whether every rank that it needs has posted.
        doomed: whether it can never complete, since other ranks called another collective
            in its place.
        failed: whether the transport gave up on it.
        given_up: when the rank saw that failure, or ``None``.
        limit: milliseconds for which a thread waits for it; 0 is without limit.
        by_torch: whether torch itself has begun it, so that the program has no request of it.
        partner: the matching operation of a message.
        callers: the operations of one collective call, by rank, its own included.
        place: the number of the call among those of its rank in the group, from 0.
        batch: the number of the ``batch_isend_irecv`` that a message is part of; 0 for none.
        thread: the number of the thread that has begun it; 0 runs the function.
        thread_name: what the program calls that thread; empty of the one that runs the function.
    """

    rank: int
    number: int
    kind: str
    peer: int
    tag: int
    group: str
    count: int
    nbytes: int
    dtype: str
    detail: str
    site: Site
    posted: int
    buffer: int = 0
    offset: int = 0
    signatures: Sequence[Signature] = ()
    shapes: Sequence[Sequence[int]] = ()
    deferred: bool = False
    wildcard: bool = False
    blocked: int | None = None
    blocked_site: Site | None = None
    done: int | None = None
    failed: bool = False
    given_up: int | None = None
    limit: int = 0
    matched: bool = False
    doomed: bool = False
    by_torch: bool = False
    partner: Operation | None = field(default=None, repr=False)
    callers: dict[int, Operation] = field(default_factory=dict, repr=False)
    place: int = 0
    batch: int = 0
    thread: int = 0
    thread_name: str = ""

    @property
    def is_message(self) -> bool:
        """Whether this is one end of a point-to-point message."""
        return self.kind in ("send", "recv")

    @property
    def makes_group(self) -> bool:
        """Whether this makes a group, and so carries nothing."""
        return self.kind in MAKE_GROUPS


@dataclass(frozen=True)
class Message:
    """A message that was sent and received.

    ``start`` is the unit of time in which it travels when the trace is replayed with every
    message taking one unit; times are in nanoseconds.  ``taken_from`` and ``put_into`` are the
    index of the first element of each end in the memory that its tensor is a view of.
    """

    source: int
    destination: int
    tag: int
    count: int
    nbytes: int
    dtype: str
    start: int
    site: Site
    posted: int
    done: int | None
    taken_from: int = 0
    put_into: int = 0

    def __str__(self) -> str:
        return (
            f"rank {self.source} → rank {self.destination}: "
            f"{self.count} × {self.dtype} ({self.nbytes} bytes), {self.site}"
        )


@dataclass(frozen=True)
class CallSpan:
    """The time that a rank spent in the student's function, in nanoseconds.

    Attributes:
        entered: when it was called, or ``None`` if it never was.
        left: when it ended, or ``None`` if the rank was still inside when the trace was closed.
        how: ``returned``, ``raised``, or ``gone`` if the process ended inside; empty while the
            rank is inside.
    """

    entered: int | None = None
    left: int | None = None
    how: str = ""

    def ended_at(self, time: int, how: str) -> CallSpan:
        """Return the span with an end, unless it has ended already."""
        return CallSpan(self.entered, time, how) if self.left is None else self


@dataclass(frozen=True)
class PauseSpan:
    """A pause of a rank, as the judge has seen it.

    Attributes:
        began, ended: when the judge heard of it, and let the rank go on, in nanoseconds.
        grown: bytes of memory that the rank's process had then, beyond those that it had before
            it loaded the program; ``None`` if the kernel was not asked, or does not say.
    """

    began: int
    ended: int
    grown: int | None = None


@dataclass(frozen=True)
class Trace:
    """Every operation of a run, by rank, in program order.

    Attributes:
        operations: the operations, by rank.
        tensor_snapshots: by rank and in order, the contents of its tensors; empty unless the
            run was recorded for a replay.
        call_spans: by rank, when it was in the function.
        closed: when recording stopped, because all ranks had ended or were ended.
        marks: by rank, the named places of its program that it passed.
        choices: the wildcard receives that were matched, in the order of matching.
        warnings: remarks on calls that break no rule but are probably mistakes.
        groups: by name, the global ranks of each group that was made, indexed by rank in it.
        virtual_seconds: of simulated ranks, when the last one returned; ``None`` of real ones.
        pauses: by rank, its pauses.  Unlike the rest they are no word of the rank's.
        connected: the global ranks of each group, by rank in it, whose members have put their
            addresses into the judge's store; ``None`` where groups connect in another way.  These
            are no word of one rank's either.
        sets_taken: where a rank took a set in an order of its own; line 0 stands for hashes.
        backends: by name of a group, what a script has asked of it: ``gloo``, ``nccl``, or
            ``mixed`` where that depends on a tensor's device.
    """

    operations: tuple[Sequence[Operation], ...]
    tensor_snapshots: tuple[Sequence[Held | Seen], ...] = ()
    call_spans: tuple[CallSpan, ...] = ()
    closed: int | None = None
    marks: tuple[Sequence[Marked], ...] = ()
    choices: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    virtual_seconds: float | None = None
    pauses: tuple[Sequence[PauseSpan], ...] = ()
    connected: frozenset[tuple[int, ...]] | None = None
    sets_taken: tuple[Site, ...] = ()
    backends: Mapping[str, str] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return len(self.operations)

    def members(self, group: str) -> Sequence[int]:
        """Return the global ranks of a group, indexed by rank in it."""
        return range(self.world_size) if group == WORLD else self.groups[group]

    def ranks_of(self, op: Operation) -> Sequence[int]:
        """Return the ranks that an operation connects: of a message two, else all of its group."""
        return (op.rank, op.peer) if op.is_message else self.members(op.group)

    def figures(self) -> Trace:
        """Return the trace without its operations: the numbers of its traffic alone."""
        kept = Trace(((),) * self.world_size, closed=self.closed, groups=self.groups)
        vars(kept)["traffic"] = self.traffic
        return kept

    def contents(self, op: Operation) -> list[float] | None:
        """Return what a message held when it was sent, or None where that was not recorded."""
        seen = [
            event.values
            for event in (self.tensor_snapshots[op.rank] if self.tensor_snapshots else ())
            if isinstance(event, Seen) and event.buffer == op.buffer and event.time <= op.posted
        ]
        return seen[-1][op.offset : op.offset + op.count] if seen else None

    def part_where(self, keeps: Callable[[Sequence[int]], bool]) -> Trace:
        """Return the part of the trace with the messages and calls whose ranks fulfil a condition.

        Making a group carries nothing, so it is in no such part.
        """
        return replace(
            self,
            operations=tuple(
                [op for op in ops if not op.makes_group and keeps(self.ranks_of(op))]
                for ops in self.operations
            ),
        )

    def split_at(self, mark: str) -> tuple[Trace, Trace]:
        """Return what each rank posted before it first passed a mark, and what it posted after.

        What a rank posts that never passes the mark is all before it.
        """
        times = [
            min((one.time for one in marks if one.text == mark), default=math.inf)
            for marks in self.marks
        ] or [math.inf] * self.world_size
        first, second = (
            replace(
                self,
                operations=tuple(
                    [op for op in ops if (op.posted > time) is later]
                    for ops, time in zip(self.operations, times, strict=True)
                ),
            )
            for later in (False, True)
        )
        return first, second

    def given(self, op: Operation) -> int:
        """Return how many elements of its rank's a message or a call carries.

        Of a message these are all, and of a receive none.  Of a collective they are what the rank
        puts in for others or itself: its tensor in an all-reduce, a reduction, an all-gather and a
        gather; all of its blocks in a reduce-scatter, a scatter and an all-to-all; in a broadcast
        the root's tensor.
        """
        if op.is_message:
            return op.count if op.kind == "send" else 0
        members = len(self.members(op.group))
        return sum(given_elements(op.kind, one, members) for one in op.signatures)

    def sent(self, op: Operation) -> int:
        """Return how many elements its rank sends for a message or a call.

        A built-in collective counts as what the best point-to-point algorithm sends for it, rounded
        down: (n − 1)/n of the full tensor by each rank for reduce-scatter and all-gather, twice
        that for an all-reduce (Patarasuk and Yuan, *Bandwidth optimal all-reduce algorithms*,
        2009), the blocks for other ranks in an all-to-all and a scatter, and the tensor where a
        broadcast, a reduction or a gather begins: at the root, or at each of the other ranks.
        """
        if op.is_message:
            return self.given(op)
        members = self.members(op.group)
        place, n = members.index(op.rank), len(members)
        whole = self.given(op)
        if n == 1:
            return 0
        if op.kind in ("reduce", "gather"):
            return 0 if op.rank == op.peer else whole
        if op.kind in ("scatter", "all_to_all"):
            return whole - sum(one.gives_to(place) or 0 for one in op.signatures)
        # an all-gather's full tensor is what all ranks put in
        passes = {"all_reduce": 2 * whole, "reduce_scatter": whole, "all_gather": n * whole}
        return passes[op.kind] * (n - 1) // n if op.kind in passes else whole

    @property
    def wildcards(self) -> bool:
        """Whether some rank posted a wildcard receive."""
        return any(op.wildcard for operations in self.operations for op in operations)

    def sends(self) -> Iterator[Operation]:
        """Yield every send, by rank and in program order, received or not."""
        for operations in self.operations:
            yield from (op for op in operations if op.kind == "send")

    @cached_property
    def traffic(self) -> Traffic:
        """The numbers that exercises put limits on."""
        sent = [
            sum(op.nbytes for op in operations if op.kind == "send")
            for operations in self.operations
        ]
        return Traffic(
            messages=sum(1 for _ in self.sends()),
            bytes=sum(sent),
            max_sent=max(sent, default=0),
            rounds=self._schedule.makespan,
        )

    @cached_property
    def seconds(self) -> float:
        """The virtual seconds of the run, where a message of b bytes takes α + b·β."""
        sizes = {(op.rank, op.number): op.nbytes for op in self.sends()}

        def takes(message: Key) -> float:
            return ALPHA + BETA * sizes[message]

        start = replay(programs(self), takes)
        return max((at + takes(message) for message, at in start.items()), default=0.0)

    def start(self, op: Operation) -> int | None:
        """Return the unit of time in which a message travels, or ``None`` if it never did."""
        send = op if op.kind == "send" or op.partner is None else op.partner
        return self._schedule.start.get((send.rank, send.number))

    @property
    def messages(self) -> list[Message]:
        """The messages that arrived, in the order of the replay in unit time."""
        found = []
        for op in self.sends():
            if op.partner is None:
                continue
            found.append(
                Message(
                    op.rank, op.partner.rank, op.tag, op.count, op.nbytes, op.dtype,
                    self._schedule.start[op.rank, op.number],
                    op.site, op.posted, op.partner.done, op.offset, op.partner.offset,
                )
            )  # fmt: skip
        return sorted(found, key=lambda m: (m.start, m.source, m.destination))

    @property
    def sent_elements(self) -> list[int]:
        """The numbers of elements that the ranks sent; see :meth:`sent` for collectives."""
        return [sum(map(self.sent, operations)) for operations in self.operations]

    @property
    def max_sent_elements(self) -> int:
        """The largest number of elements that one rank sent."""
        return max(self.sent_elements, default=0)

    @property
    def max_given_elements(self) -> int:
        """The largest number of elements of one rank's that a message or a call carried."""
        return max(
            (self.given(op) for operations in self.operations for op in operations), default=0
        )

    def strangers(self) -> list[Operation]:
        """Return the sends to ranks other than the left and right neighbours on the ring."""
        n = self.world_size
        return [op for op in self.sends() if (op.peer - op.rank) % n not in (1, n - 1)]

    @property
    def stranger_count(self) -> int:
        """The number of sends to ranks that are not neighbours on the ring."""
        return len(self.strangers())

    @cached_property
    def _schedule(self) -> RoundSchedule:
        return RoundSchedule.of_trace(self)

    def __str__(self) -> str:
        lines, last = [], None
        for message in self.messages:
            if message.start != last:
                last = message.start
                lines.append(f"round {last + 1}")
            lines.append(f"  {message}")
        t = self.traffic
        lines.append(
            f"messages: {t.messages}, bytes: {t.bytes}, most by one rank: {t.max_sent},"
            f" rounds: {t.rounds}"
        )
        return "\n".join(lines)

    __repr__ = __str__


#: Collectives in which a rank has a block for each member, and not one tensor for all.
_BLOCKS = frozenset({"scatter", "reduce_scatter", "all_to_all"})


def given_elements(kind: str, signature: Signature, members: int) -> int:
    """Return how many elements a rank puts into a collective."""
    if kind not in _BLOCKS:
        return max(signature.gives, default=0)
    # a single number stands for every member
    return sum(signature.gives) * (members if len(signature.gives) == 1 else 1)


@dataclass(frozen=True)
class RoundSchedule:
    """The unit of time in which each message of a trace travels."""

    start: dict[tuple[int, int], int]
    makespan: int

    @classmethod
    def of_trace(cls, trace: Trace) -> RoundSchedule:
        """Replay a trace by the rules at the head of this module."""
        start = {message: int(at) for message, at in replay(programs(trace)).items()}
        return cls(start, max(start.values(), default=-1) + 1)


def programs(trace: Trace) -> list[list[Step]]:
    """Return the posts and waits of each rank, of its messages that were matched."""
    return [list(_steps(operations)) for operations in trace.operations]


def _steps(operations: Sequence[Operation]) -> Iterator[Step]:
    """Yield the posts and waits of a rank, in time order."""
    moments: list[tuple[int, int, Step]] = []
    for op in operations:
        if not op.is_message or op.partner is None:
            continue
        key = (op.rank, op.number)
        send = key if op.kind == "send" else (op.partner.rank, op.partner.number)
        moments.append((op.posted, 0, Step("post", op.kind, send, op.batch)))
        if op.done is not None:
            waited = op.done if op.blocked is None else op.blocked
            moments.append((waited, 1, Step("wait", op.kind, send)))
    yield from (step for _, _, step in sorted(moments, key=lambda m: m[:2]))
