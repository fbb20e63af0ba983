"""The finished record of a run: who sent what to whom, when, from which line."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from grader.core.events import Held, Marked, Seen, Signature
from grader.core.verdict import Site, Traffic, Volume

__all__ = ["Measured", "Message", "Operation", "CallSpan", "Step", "Trace", "heard_from", "replay"]


# A record replayed in unit time: how many rounds an algorithm takes. --------------
#
# Every message takes one unit of time.  A rank has one port to send and one to
# receive (full duplex), and computing takes no time.  Each rank runs its
# program: a post puts a message in its port's queue, a wait holds the rank until
# that message has arrived.  A message can travel once both ends are posted.  A
# sending port takes the messages that can travel in the order of their posts and
# holds on to the first until the other end is free; a receiving port takes, of
# those that ask for it, the one whose receive was posted first.
#
# So a flat broadcast takes n − 1 rounds, a binomial one ⌈log₂ n⌉, and an
# all-to-all in which everybody writes to rank 0 first takes more rounds than one
# whose peers rotate.  This is the single-port, full-duplex model of Thakur,
# Rabenseifner and Gropp, *Optimization of Collective Communication Operations in
# MPICH* (2005), section 3, with α + nβ = 1 for every message.

#: A message, named by its send: rank and number of the operation.
Key = tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One step of a rank's program: ``post`` or ``wait``, for one end of a message."""

    action: str
    end: str
    message: Key


def replay(programs: Sequence[Sequence[Step]]) -> dict[Key, int]:
    """The unit of time, from 0, in which each message travels.

    Args:
        programs: for each rank its posts and waits in order; every message has
            both of its posts somewhere in them.
    """
    return _Replay(programs).run()


class _Replay:
    """The state of a replay; a place is where in its rank's program a post stands."""

    def __init__(self, programs: Sequence[Sequence[Step]]) -> None:
        self.programs = programs
        self.position = [0] * len(programs)
        self.posted: dict[Key, dict[str, tuple[int, int]]] = {}
        self.start: dict[Key, int] = {}
        #: by sending rank, the messages that can travel, first posted first
        self.ready: dict[int, list[tuple[int, Key]]] = {}

    def run(self) -> dict[Key, int]:
        now = 0
        while True:
            for rank in range(len(self.programs)):
                self._advance(rank, now)
            chosen = self._choose()
            if not chosen:
                return self.start
            for sender, message in chosen:
                heapq.heappop(self.ready[sender])
                self.start[message] = now
            now += 1

    def _advance(self, rank: int, now: int) -> None:
        """Let a rank run until it waits for a message that has not arrived by ``now``."""
        program = self.programs[rank]
        while self.position[rank] < len(program):
            place = self.position[rank]
            step = program[place]
            if step.action == "wait":
                if self.start.get(step.message, now) >= now:
                    return
            else:
                ends = self.posted.setdefault(step.message, {})
                ends[step.end] = (rank, place)
                if len(ends) == 2:
                    sender, order = ends["send"]
                    heapq.heappush(self.ready.setdefault(sender, []), (order, step.message))
            self.position[rank] += 1

    def _choose(self) -> list[tuple[int, Key]]:
        """The messages that travel in this unit of time, with their senders."""
        taken: dict[int, tuple[int, int, Key]] = {}
        for sender, queue in self.ready.items():
            if not queue:
                continue
            message = queue[0][1]
            receiver, place = self.posted[message]["recv"]
            if receiver not in taken or place < taken[receiver][0]:
                taken[receiver] = (place, sender, message)
        return [(sender, message) for _, sender, message in taken.values()]


# Who can know what: which ranks' beginnings come before which ranks' ends. --------
#
# Lamport's happened-before (*Time, Clocks, and the Ordering of Events in a
# Distributed System*, 1978): what a rank does after it has received a message
# comes after what the sender did before it sent.


def heard_from(trace: Trace) -> list[frozenset[int]]:
    """For each rank, those whose beginning is known to be past when it ends.

    A chain of messages leads from each of them to the rank, so it cannot end
    before they have begun, however fast or slow anybody is.  The rank itself
    is among them.

    The record may be a part of a longer one, such as the second of two calls
    in a row.  A message that was sent before that part tells nothing of it.
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


# The record. ----------------------------------------------------------------------


class Measured(Protocol):
    """What a limit can be judged on."""

    @property
    def traffic(self) -> Volume:
        """How much was sent."""
        ...

    @property
    def max_sent_elements(self) -> int:
        """The most elements that any one rank sent."""
        ...

    @property
    def stranger_count(self) -> int:
        """Messages to ranks that are no neighbours on the ring."""
        ...


@dataclass(eq=False)
class Operation:
    """One call into the process group, as its rank reported it.

    Attributes:
        rank: the global rank that called.
        number: its place in that rank's program order, from 0.
        kind: ``send``, ``recv``, or the name of a collective.
        peer: the other rank; for a wildcard, −1 until it is matched; for a
            rooted collective its root.
        tag, group: the channel.
        count, nbytes, dtype: the size of the message in elements and bytes.
        detail: the reduction of a collective, or the members of a new group.
        signatures: what the rank gives to the others in a collective, and takes.
        site: the student's line.
        buffer: which memory the message lies in; views of one tensor share it.
        offset: where in that memory it begins, in elements.
        posted: nanoseconds, monotonic, when it was handed to the transport.
        blocked: when the rank began to wait for it, if it ever did.
        done: when the rank saw it complete, if it ever did.
        matched: whether everyone whom it needs has posted.
        doomed: whether it can never complete, since other ranks called another
            collective in its place.
        failed: whether the transport gave up on it.
        given_up: when the rank saw that, if it did.
        limit: milliseconds for which a thread would wait for it; 0 is for ever.
        partner: the matching operation of a message.
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
    partner: Operation | None = field(default=None, repr=False)

    @property
    def is_message(self) -> bool:
        """Whether this is one end of a point-to-point message."""
        return self.kind in ("send", "recv")


@dataclass(frozen=True)
class Message:
    """A message that was sent and received.

    ``start`` is the unit of time in which it travels when the record is
    replayed with every message taking one unit; times are nanoseconds.
    ``taken_from`` and ``put_into`` say where in its tensor each end lies, as
    the place of the first element in the memory that the tensor is a view of.
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
    """When a rank was in the student's function, in nanoseconds.

    Attributes:
        entered: ``None`` if it was never called.
        left: ``None`` if the rank was still in it when the record was closed.
        how: ``returned``, ``raised``, or ``gone`` if the process ended inside;
            empty while it is in it.
    """

    entered: int | None = None
    left: int | None = None
    how: str = ""

    def until(self, time: int, how: str) -> CallSpan:
        """The stay when it ends now; the first end is the end."""
        return CallSpan(self.entered, time, how) if self.left is None else self


@dataclass(frozen=True)
class Trace:
    """Every operation of a run, by rank, in program order.

    ``sights`` holds, by rank and in order, what was seen in its tensors: empty
    unless the run was watched.  ``stays`` tells when each rank was in the
    function, and ``closed`` when nobody looked any more, because all ranks had
    ended or because the run was ended for them.  ``marks`` are, by rank, the
    named places of its program that it came by.  ``choices`` are the receives from
    any rank that were matched, in the order in which the judge matched them.  ``warnings``
    say what is probably meant otherwise, though it breaks no rule.
    """

    operations: tuple[Sequence[Operation], ...]
    sights: tuple[Sequence[Held | Seen], ...] = ()
    stays: tuple[CallSpan, ...] = ()
    closed: int | None = None
    marks: tuple[Sequence[Marked], ...] = ()
    choices: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        """How many ranks took part."""
        return len(self.operations)

    @property
    def wildcards(self) -> bool:
        """Whether a rank received from any rank."""
        return any(op.wildcard for operations in self.operations for op in operations)

    def sends(self) -> Iterator[Operation]:
        """Every message sent, by rank and program order, received or not."""
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

    def start(self, op: Operation) -> int | None:
        """The unit of time in which a message travels; ``None`` if it never did."""
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
    def max_sent_elements(self) -> int:
        """The most elements that any one rank sent."""
        sent = (
            sum(op.count for op in operations if op.kind == "send")
            for operations in self.operations
        )
        return max(sent, default=0)

    def strangers(self) -> list[Operation]:
        """Sends to a rank that is neither left nor right neighbour on the ring."""
        n = self.world_size
        return [op for op in self.sends() if (op.peer - op.rank) % n not in (1, n - 1)]

    @property
    def stranger_count(self) -> int:
        """How many there are."""
        return len(self.strangers())

    @cached_property
    def _schedule(self) -> RoundSchedule:
        return RoundSchedule.of(self)

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


@dataclass(frozen=True)
class RoundSchedule:
    """When each message of a trace travels in unit time."""

    start: dict[tuple[int, int], int]
    makespan: int

    @classmethod
    def of(cls, trace: Trace) -> RoundSchedule:
        """Replay a trace; see :mod:`grader.trace.trace` for the rules."""
        programs = [list(_steps(operations)) for operations in trace.operations]
        start = replay(programs)
        return cls(start, max(start.values(), default=-1) + 1)


def _steps(operations: Sequence[Operation]) -> Iterator[Step]:
    """A rank's program: its posts, and the moments it waited, in time order."""
    moments: list[tuple[int, int, Step]] = []
    for op in operations:
        if not op.is_message or op.partner is None:
            continue
        key = (op.rank, op.number)
        send = key if op.kind == "send" else (op.partner.rank, op.partner.number)
        moments.append((op.posted, 0, Step("post", op.kind, send)))
        if op.done is not None:
            waited = op.done if op.blocked is None else op.blocked
            moments.append((waited, 1, Step("wait", op.kind, send)))
    yield from (step for _, _, step in sorted(moments, key=lambda m: m[:2]))
