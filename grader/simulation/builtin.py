"""The built-in collectives of one simulation: their algorithms, and the calls of the ranks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from grader.core.events import Outside, Remarked, Signature
from grader.core.source_locations import TEXT, line_here
from grader.core.verdict import Site
from grader.rank.recorder import REMARKS, ForbiddenCall, refusal
from grader.simulation.algorithms import ALGORITHMS, UNEVEN, choose
from grader.simulation.scheduler import Rank
from grader.trace.message_matcher import disagreement

if TYPE_CHECKING:
    from grader.simulation.world import SimulatedWorld

__all__ = ["Builtins", "BuiltinCall", "Disagreement", "PendingCollectives", "Work"]


# Matching calls: the k-th call of each rank of a group is one collective. ---------


@dataclass(slots=True, eq=False)
class BuiltinCall:
    """A rank's call of a collective.

    Attributes:
        rank: the global rank.
        kind: name of the collective.
        group: name of the process group.
        peer: the root's global rank, or −1 without a root.
        detail: what else all ranks must agree on, such as the reduction.
        signatures: what the rank gives to the others and takes from them.
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
    """Two ranks call different collectives, or the same one with arguments that do not match."""

    def __init__(self, first: BuiltinCall, second: BuiltinCall) -> None:
        super().__init__(
            f"rank {second.rank} calls {second.kind} where rank {first.rank} calls {first.kind}"
        )
        self.calls = _by_rank(first, second)


class _Slot(dict[int, BuiltinCall]):
    """The calls of one collective, by rank.

    Attributes:
        uneven: whether some rank gives or takes different numbers of elements per rank.
    """

    uneven = False


class PendingCollectives:
    """The collective calls of one group that some members have not made yet.

    Args:
        members: the global ranks, indexed by rank in the group.
    """

    def __init__(self, members: Sequence[int]) -> None:
        self._members = members
        self._open: deque[_Slot] = deque()
        self._complete = 0
        self._calls: dict[int, int] = {}

    def join(self, call: BuiltinCall) -> None:
        """Add the next call of a rank.

        Raises:
            Disagreement: it does not match the call of another rank.
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
            # where each rank gives and takes one number, a call that matches the root's, or
            # any other where there is no root, matches all of them
            others = (*others, slot[call.peer])
        for other in others:
            if disagreement(*_by_rank(other, call), self._members) is not None:
                raise Disagreement(other, call)
        slot[call.rank] = call
        while self._open and len(self._open[0]) == len(self._members):
            self._open.popleft()
            self._complete += 1

    def open(self) -> Iterator[BuiltinCall]:
        """Yield the calls that some member has not made yet, in their order."""
        for slot in self._open:
            for rank in sorted(slot):
                yield slot[rank]


def _by_rank(one: BuiltinCall, other: BuiltinCall) -> tuple[BuiltinCall, BuiltinCall]:
    return (one, other) if one.rank < other.rank else (other, one)


# The collectives of one simulation. ---------------------------------------------------


class Work:
    """A collective that a rank has called, as ``async_op=True`` returns it.

    The scheduler treats it as a request, though no single message belongs to it.

    Attributes:
        rank: the rank that called it.
        call: the call.
        done: the tick at which it was complete, or ``None`` before.
        waiter: the rank that waits for it, or ``None``.
    """

    __slots__ = ("_future", "_results", "_world", "call", "done", "rank", "waiter")

    def __init__(
        self, world: SimulatedWorld, rank: Rank, call: BuiltinCall, results: list[Any]
    ) -> None:
        self._world = world
        self._results = results
        self.rank = rank
        self.call = call
        self.done: int | None = None
        self.waiter: Rank | None = None
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete.

        Raises:
            WaitExpired: ``timeout`` ended first.
        """
        if self.done is None:
            self._world.wait(self, timeout)
        return True

    def is_completed(self) -> bool:
        """Return whether it is complete, after letting the other ranks run if it was not."""
        if self.done is None:
            self._world.give_way(self)
        return self.done is not None

    def is_success(self) -> bool:
        """Return whether it is complete."""
        return self.done is not None

    def result(self) -> list[Any]:
        """Return the tensors that it writes."""
        return self._results

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future that is complete when the collective is."""
        if self._future is None:
            self._future = torch.futures.Future()
            if self.done is not None:
                self.completed()
        return self._future

    def completed(self) -> None:
        """Complete the future, if there is one."""
        if self._future is not None:
            self._future.set_result(self._results)


class Builtins:
    """The built-in collectives of one simulation.

    Args:
        algorithms: names of algorithms, by collective; the others have their defaults.
        allowed: names of the collectives that may be called; ``None`` allows all.

    Attributes:
        run: the algorithm of each collective.
        uneven: the algorithm of an all-to-all with blocks of several sizes, or ``None`` where
            the chosen one takes such blocks.
        pending: by group, the calls that some members have not made yet.
        members: the members of each group that has been made.
        inside: by rank, the collective that it is in.
        refused: by rank, the exception of its first forbidden call.
        disagreements: by rank, the exception of its first call that does not match another
            rank's, whether the program caught it or not.
        warned: what ranks do that breaks no rule and is probably a mistake, once for each line.
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
        self.uneven = ALGORITHMS["all_to_all"][instead].run if instead else None
        self._allowed = allowed
        self.pending: dict[str, PendingCollectives] = {}
        self.members: dict[str, list[int]] = {}
        self.inside: dict[int, BuiltinCall] = {}
        self.refused: dict[int, ForbiddenCall] = {}
        self.disagreements: dict[int, Disagreement] = {}
        self.warned: dict[tuple[int, Outside | Remarked], None] = {}

    def found(self, name: str, members: list[int]) -> None:
        """Add a new group."""
        self.members[name] = members
        self.pending[name] = PendingCollectives(members)

    def require_allowed(self, rank: int, kind: str) -> None:
        """Raise :class:`ForbiddenCall`, and remember it, unless a collective is allowed."""
        message = refusal(kind, self._allowed)
        if message is not None:
            error = ForbiddenCall(message)
            self.refused.setdefault(rank, error)
            raise error

    def outside(self, rank: int, function: str) -> None:
        """Record that a rank calls a function on a group that it is not in."""
        file, line, _ = line_here()
        self.warned[rank, Outside(function, file, line)] = None

    def remark(self, rank: int, text: str, file: str, line: int) -> None:
        """Record what a rank is warned of."""
        if len(self.warned) < REMARKS:
            self.warned[rank, Remarked(text[:TEXT], file, line)] = None

    def join(self, call: BuiltinCall) -> None:
        """Add the next collective call of a rank in a group.

        Raises:
            Disagreement: it does not match the call of another rank.
        """
        try:
            self.pending[call.group].join(call)
        except Disagreement as error:
            self.disagreements.setdefault(call.rank, error)
            raise

    def open(self) -> Iterator[BuiltinCall]:
        """Yield the calls that some members of their groups have not made."""
        for calls in self.pending.values():
            yield from calls.open()

    def awaited(self, rank: Rank) -> BuiltinCall | None:
        """Return the collective that a rank waits in or for, or ``None``."""
        if rank.waits is None:
            return None
        return rank.waits.call if isinstance(rank.waits, Work) else self.inside.get(rank.number)
