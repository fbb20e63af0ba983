"""The orders in which wildcard receives can be matched, and a search through them.

A receive from any rank takes whichever message arrives first, and a program may be
right in one order and hang in another.  So one run proves little.  As in ISP's POE
(Vakkalanka, Gopalakrishnan and Kirby, *Dynamic Verification of MPI Programs with
Reductions in Presence of Split Operations and Relaxed Orderings*, 2008), a wildcard is
matched only when nothing else can happen any more; its match is then a choice, and
all else of the run follows from the choices.  After a run its record shows what else
each choice could have been, and those runs are made next: a dynamic partial-order
reduction (Flanagan and Godefroid, 2005).

Choices that do not depend on each other commute, so runs differ in what is chosen and
never in the order of choosing: a further run changes one choice, and keeps all that do
not depend on it.  A message is an alternative for a
receive if it was sent on its channel, is not taken before, and does not depend on
what the receive got.  It may have been sent later: then the receive is held back
until it is there.  Dependence is Lamport's happened-before, with a send's completion
after its receive (sends do not buffer) and a collective's after all its calls.

All orders are too many: seven messages to one rank have 5,040.  The search begins with
orders that differ in few choices from the first run, and among these with a message
that a later receive asks for by name: such a receive hangs if the wildcard takes it.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from headcount.core.verdict import ArrivalOrders, ordinal
from headcount.trace.trace import Operation, Trace

__all__ = ["Exploration", "WildcardPolicy", "named_race"]

#: A receive: its rank, and its number there.
Place = tuple[int, int]

#: Receives with the sources of the messages that they get.
_Choices = frozenset[tuple[Place, int]]

#: The order in which runs are tried: few deviations from the first run first; then messages that
#: a later receive asks for by name; run, receive and source break ties.
_Precedence = tuple[int, bool, int, int, int]

#: How many choices of a run are examined for alternatives.
_BRANCHING = 200


@dataclass(frozen=True)
class WildcardPolicy:
    """A rule for the message that each wildcard receive gets.

    Attributes:
        forced: the source of some receives, by rank and number.
        lowest: prefer the lowest rank's message for the other receives.  Without it, the
            highest rank's is preferred, which programs are less likely to rely on.
    """

    forced: Mapping[Place, int] = field(default_factory=lambda: MappingProxyType({}))
    lowest: bool = False

    def choose(self, ready: Iterable[tuple[Operation, Sequence[int]]]) -> tuple[Operation, int]:
        """Choose a receive and its source among receives with the sources that have sent.

        A receive whose forced source has not sent yet is held back while another can go on.
        """
        held_back = []
        for receive, sources in ready:
            source = self.forced.get(_place(receive))
            if source is None:
                return receive, self._default(sources)
            if source in sources:
                return receive, source
            held_back.append((receive, sources))
        receive, sources = held_back[0]
        return receive, self._default(sources)

    def _default(self, sources: Sequence[int]) -> int:
        return sources[0] if self.lowest else sources[-1]


def _place(op: Operation) -> Place:
    return op.rank, op.number


def _channel(receive: Operation) -> tuple[int, str, int]:
    return receive.rank, receive.group, receive.tag


class Exploration:
    """A search through the orders of one program; give it each run, and it names the next.

    Args:
        most: how many orders to try, the first included.
        seconds: of wall clock after which no further order is begun.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._deadline = time.monotonic() + seconds
        self._tried: set[_Choices] = set()
        self._untried: list[tuple[_Precedence, _Choices]] = []
        self._known: set[_Choices] = set()
        self._runs = 0
        self._deviations = 0  # of the run that was asked for last
        self._reversed = False
        self._whole = True

    @property
    def orders(self) -> ArrivalOrders:
        """The number of orders that have been tried, and that are known."""
        untried = sum(not self._is_covered(choices) for _, choices in self._untried)
        return ArrivalOrders(
            len(self._tried), len(self._tried) + untried, self._whole and not untried
        )

    def _is_covered(self, choices: _Choices) -> bool:
        """Return whether some run has made these choices, perhaps among others."""
        return any(choices <= tried for tried in self._tried)

    def add(self, trace: Trace) -> None:
        """Add a run, which followed the policy returned last."""
        run = _Run(trace)
        self._tried.add(frozenset(_sources(trace).items()))
        self._whole &= len(run.choices) <= _BRANCHING
        for index, receive in enumerate(run.choices[:_BRANCHING]):
            kept = None
            for source, asked in run.alternatives(receive).items():
                kept = run.independent(receive) if kept is None else kept
                choices = frozenset({**kept, _place(receive): source}.items())
                if choices not in self._known and not self._is_covered(choices):
                    self._known.add(choices)
                    precedence = (self._deviations + 1, not asked, self._runs, index, source)
                    heapq.heappush(self._untried, (precedence, choices))
        self._runs += 1

    def next(self) -> WildcardPolicy | None:
        """Return how to match the next run; ``None`` if no order is left, or no time for it."""
        while self._untried and self._is_covered(self._untried[0][1]):
            heapq.heappop(self._untried)
        if not self._untried or self._runs >= self._most or time.monotonic() >= self._deadline:
            return None
        (deviations, unasked, *_), choices = self._untried[0]
        if unasked and not self._reversed:
            # the order that differs most from the first run is worth an early try too
            self._reversed, self._deviations = True, 1
            return WildcardPolicy(lowest=True)
        heapq.heappop(self._untried)
        self._deviations = deviations
        return WildcardPolicy(dict(choices))


class _Run:
    """The choices of a run, and the alternatives to each."""

    def __init__(self, trace: Trace) -> None:
        self.choices = trace.choices
        self._alternatives: dict[Place, dict[int, Operation]] = {}
        self._named: dict[tuple[int, str, int], list[tuple[int, int]]] = defaultdict(list)
        if not self.choices:
            return
        self._clock = _Clock(trace)
        sends: dict[tuple[str, int, int], dict[int, deque[Operation]]] = defaultdict(dict)
        for op in trace.sends():
            box = sends[op.group, op.tag, op.peer]
            box.setdefault(op.rank, deque()).append(op)
        for operations in trace.operations:
            for op in operations:
                if op.kind == "recv":
                    self._look_at(op, sends[op.group, op.tag, op.rank])

    def _look_at(self, receive: Operation, sends: dict[int, deque[Operation]]) -> None:
        """Find the alternatives of a receive among the messages that are left, and take its own."""
        if not receive.wildcard:
            self._named[_channel(receive)].append((receive.number, receive.peer))
        if receive.partner is None:
            return
        own = receive.partner.rank
        if receive.wildcard:
            self._alternatives[_place(receive)] = {
                source: queue[0]
                for source, queue in sends.items()
                if source != own and queue and not self._may_depend(queue[0], receive)
            }
        # messages from one rank do not overtake each other
        sends[own].popleft()

    def _may_depend(self, op: Operation, receive: Operation) -> bool:
        """Return whether an operation may have been posted because of what a receive got."""
        assert receive.partner is not None
        return self._clock.follows(op, receive) or self._clock.follows(op, receive.partner)

    def alternatives(self, receive: Operation) -> dict[int, bool]:
        """Return other sources of a receive, and whether a later receive asks for each by name."""
        named = self._named[_channel(receive)]
        later = {peer for number, peer in named if number > receive.number}
        return {source: source in later for source in self._alternatives[_place(receive)]}

    def independent(self, receive: Operation) -> dict[Place, int]:
        """Return the choices of the run that do not depend on this one."""
        kept = {}
        for other in self.choices:
            assert other.partner is not None
            channel, theirs = _channel(receive), _channel(other)
            behind = channel == theirs and other.number >= receive.number
            if not (
                behind
                or self._may_depend(other, receive)
                or self._may_depend(other.partner, receive)
            ):
                kept[_place(other)] = other.partner.rank
        return kept


class _Clock:
    """The vector clocks of a trace (Fidge and Mattern, 1988)."""

    def __init__(self, trace: Trace) -> None:
        self._posted: dict[Place, tuple[int, ...]] = {}
        self._done: dict[Place, int] = {}
        moments: list[tuple[int, int, int, int]] = []
        calls: dict[tuple[str, int], list[Operation]] = defaultdict(list)
        call_of: dict[Place, tuple[str, int]] = {}
        for operations in trace.operations:
            made: dict[str, int] = defaultdict(int)
            for index, op in enumerate(operations):
                moments.append((op.posted, 0, op.rank, index))
                if op.done is not None:
                    moments.append((op.done, 1, op.rank, index))
                if not op.is_message:
                    call_of[_place(op)] = (op.group, made[op.group])
                    calls[op.group, made[op.group]].append(op)
                    made[op.group] += 1
        now = [[0] * trace.world_size for _ in trace.operations]
        for _, is_done, rank, index in sorted(moments):
            op, mine = trace.operations[rank][index], now[rank]
            mine[rank] += 1
            if not is_done:
                self._posted[_place(op)] = tuple(mine)
                continue
            self._done[_place(op)] = mine[rank]
            others = [op.partner] if op.is_message else calls[call_of[_place(op)]]
            for other in others:
                before = None if other is None else self._posted.get(_place(other))
                if before is not None:
                    mine[:] = map(max, mine, before)

    def follows(self, later: Operation, earlier: Operation) -> bool:
        """Return whether an operation was posted after the completion of another was known."""
        done = self._done.get(_place(earlier))
        return done is not None and self._posted[_place(later)][earlier.rank] >= done


def named_race(failed: Trace, passed: Iterable[Trace], orders: ArrivalOrders) -> str:
    """Return which wildcard's choice separates a failed run from one that passed.

    The failed run is compared with the passed one that agrees with it longest.  The result is
    two sentences to follow the failure's message, or an empty string if no passed run differs
    in a choice that both made.
    """
    best: tuple[int, Trace] | None = None
    for trace in passed:
        sources = _sources(trace)
        for index, receive in enumerate(failed.choices):
            assert receive.partner is not None
            if sources.get(_place(receive), receive.partner.rank) != receive.partner.rank:
                if best is None or index > best[0]:
                    best = index, trace
                break
    if best is None:
        return ""
    index, trace = best
    receive = failed.choices[index]
    assert receive.partner is not None
    own, other = receive.partner.rank, _sources(trace)[_place(receive)]
    able = {own, other, *_Run(failed).alternatives(receive)}
    able |= {
        source
        for twin in trace.choices
        if _place(twin) == _place(receive)
        for source in _Run(trace).alternatives(twin)
    }
    # the failed run may have ended before further receives
    mine, theirs = (
        [op for op in run.operations[receive.rank] if op.wildcard] for run in (failed, trace)
    )
    which = f"{ordinal(mine.index(receive) + 1)} " if len(mine + theirs) > 2 else ""
    *first, last = map(str, sorted(able))
    return (
        f". The order of arrival decides: rank {receive.rank}'s {which}receive from any rank"
        f" ({receive.site}) can get the message of rank {', '.join(first)} or {last}."
        f" With rank {own}'s it fails, with rank {other}'s it passes ({orders})"
    )


def _sources(trace: Trace) -> dict[Place, int]:
    return {_place(op): op.partner.rank for op in trace.choices if op.partner is not None}
