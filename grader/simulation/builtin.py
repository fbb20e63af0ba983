"""What the built-in collectives of one simulation share: their algorithms, and who is where."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grader.core.events import Outside, Signature
from grader.core.source_locations import line_here
from grader.core.verdict import Site
from grader.rank.recorder import ForbiddenCall, refusal
from grader.simulation.algorithms import ALGORITHMS, UNEVEN, choose
from grader.simulation.scheduler import Rank
from grader.trace.message_matcher import disagreement

if TYPE_CHECKING:
    from grader.simulation.world import SimulatedWorld

__all__ = ["Builtins", "BuiltinCall", "Disagreement", "PendingCollectives", "Work"]


# That all ranks of a group mean the same call: the k-th of each rank is one collective. ----


@dataclass(slots=True, eq=False)
class BuiltinCall:
    """A rank's call of a collective.

    Attributes:
        rank: the global rank.
        kind: name of the collective.
        group: name of the process group.
        peer: the root, a global rank, or −1 without one.
        detail: what else all ranks have to agree on, such as the reduction.
        signatures: what the rank gives to the others, and takes.
        site: the student's line.
    """

    rank: int
    kind: str
    group: str
    peer: int
    detail: str
    signatures: Sequence[Signature]
    site: Site


class Disagreement(RuntimeError):
    """Two ranks are in different collectives, or mean different things by one."""

    def __init__(self, first: BuiltinCall, second: BuiltinCall) -> None:
        super().__init__(
            f"rank {second.rank} calls {second.kind} where rank {first.rank} calls {first.kind}"
        )
        self.calls = _by_rank(first, second)


class _Slot(dict[int, BuiltinCall]):
    """The calls of one collective, by rank.

    Attributes:
        uneven: whether a rank has a number of its own for some other.
    """

    uneven = False


class PendingCollectives:
    """The calls of one group that not all members have made yet.

    Args:
        members: global ranks, by rank in the group.
    """

    def __init__(self, members: Sequence[int]) -> None:
        self._members = members
        self._open: deque[_Slot] = deque()
        self._complete = 0
        self._calls: dict[int, int] = {}

    def join(self, call: BuiltinCall) -> None:
        """A rank makes its next call.

        Raises:
            Disagreement: it is not the one that others have made.
        """
        index = self._calls.get(call.rank, 0)
        self._calls[call.rank] = index + 1
        place = index - self._complete
        if place == len(self._open):
            self._open.append(_Slot())
        slot = self._open[place]
        slot.uneven |= any(len(s.gives) > 1 or len(s.takes) > 1 for s in call.signatures)
        others: Iterable[BuiltinCall] = islice(slot.values(), 1)
        if slot.uneven or call.rank == call.peer:
            others = slot.values()
        elif call.peer in slot:
            # where all give and take one number, who agrees with the root, or without one
            # with anybody, agrees with everybody
            others = (*others, slot[call.peer])
        for other in others:
            if disagreement(*_by_rank(other, call), self._members) is not None:
                raise Disagreement(other, call)
        slot[call.rank] = call
        while self._open and len(self._open[0]) == len(self._members):
            self._open.popleft()
            self._complete += 1

    def open(self) -> Iterator[BuiltinCall]:
        """The calls that somebody has not made yet, in their order."""
        for slot in self._open:
            for rank in sorted(slot):
                yield slot[rank]


def _by_rank(one: BuiltinCall, other: BuiltinCall) -> tuple[BuiltinCall, BuiltinCall]:
    return (one, other) if one.rank < other.rank else (other, one)


# Collectives of one simulation. ---------------------------------------------------


class Work:
    """A collective that a rank has called: what ``async_op=True`` returns.

    To the world it is a request, but there is no message in it.

    Attributes:
        rank: whose it is.
        call: which.
        done: ticks when it was complete; ``None`` before.
        waiter: who waits for it, if anybody does.
    """

    __slots__ = ("_results", "_world", "call", "done", "rank", "waiter")

    def __init__(
        self, world: SimulatedWorld, rank: Rank, call: BuiltinCall, results: list[Any]
    ) -> None:
        self._world = world
        self._results = results
        self.rank = rank
        self.call = call
        self.done: int | None = None
        self.waiter: Rank | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete, or ``timeout`` ends."""
        if self.done is None:
            self._world.wait(self, timeout)
        return True

    def is_completed(self) -> bool:
        """Whether it is complete by now; whoever asks in a loop lets the others run."""
        if self.done is None:
            self._world.give_way(self)
        return self.done is not None

    def is_success(self) -> bool:
        """Whether it is complete."""
        return self.done is not None

    def result(self) -> list[Any]:
        """The tensors that it writes."""
        return self._results

    def get_future(self) -> Any:
        """Not in a simulation."""
        raise RuntimeError("a simulated collective has no future; call wait() instead")


class Builtins:
    """The built-in collectives of one simulation.

    Args:
        algorithms: names, by collective; what is missing has the default.
        allowed: names of the collectives that may be called; ``None`` is all.

    Attributes:
        run: the algorithm of each collective.
        meetings: by group, the calls that not all have made yet.
        members: of each group that has been made.
        inside: the collective that a rank is in.
        refused: the first forbidden call of a rank.
        disagreements: the first call of a rank that is not the others', caught or not.
        warned: the calls of ranks on groups that they are not in, once for each line.
    """

    def __init__(
        self,
        algorithms: Mapping[str, str] = MappingProxyType({}),
        allowed: frozenset[str] | None = None,
    ) -> None:
        names = choose(algorithms)
        self.run: dict[str, Callable[..., Any]] = {
            collective: ALGORITHMS[collective][name].run for collective, name in names.items()
        }
        instead = UNEVEN.get(names["all_to_all"])
        #: for an all-to-all of blocks of several sizes; ``None`` if any algorithm will do
        self.uneven = ALGORITHMS["all_to_all"][instead].run if instead else None
        self._allowed = allowed
        self.meetings: dict[str, PendingCollectives] = {}
        self.members: dict[str, list[int]] = {}
        self.inside: dict[int, BuiltinCall] = {}
        self.refused: dict[int, ForbiddenCall] = {}
        self.disagreements: dict[int, Disagreement] = {}
        self.warned: dict[tuple[int, Outside], None] = {}

    def found(self, name: str, members: list[int]) -> None:
        """A group has been made."""
        self.members[name] = members
        self.meetings[name] = PendingCollectives(members)

    def require_allowed(self, rank: int, kind: str) -> None:
        """Raise :class:`ForbiddenCall`, and remember it, unless a collective is allowed."""
        message = refusal(kind, self._allowed)
        if message is not None:
            error = ForbiddenCall(message)
            self.refused.setdefault(rank, error)
            raise error

    def outside(self, rank: int, function: str) -> None:
        """A rank calls a function on a group that it is not in."""
        file, line, _ = line_here()
        self.warned[rank, Outside(function, file, line)] = None

    def join(self, call: BuiltinCall) -> None:
        """A rank makes its next collective call in a group.

        Raises:
            Disagreement: it is not the one that others have made.
        """
        try:
            self.meetings[call.group].join(call)
        except Disagreement as error:
            self.disagreements.setdefault(call.rank, error)
            raise

    def open(self) -> Iterator[BuiltinCall]:
        """Calls that some members of their groups have not made."""
        for meeting in self.meetings.values():
            yield from meeting.open()

    def awaited(self, rank: Rank) -> BuiltinCall | None:
        """The collective that a rank waits in, or for, if it does."""
        if rank.waits is None:
            return None
        return rank.waits.call if isinstance(rank.waits, Work) else self.inside.get(rank.number)
