"""What the built-in collectives of one simulation share: their algorithms, and who is where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from grader.core.events import Outside
from grader.core.source_locations import line_here
from grader.rank.recorder import ForbiddenCall, refusal
from grader.simulation.algorithms.catalogue import ALGORITHMS, UNEVEN, choose
from grader.simulation.collective_matching import Call, Disagreement, Meeting
from grader.simulation.requests import Rank

if TYPE_CHECKING:
    from grader.simulation.mailboxes import Hub

__all__ = ["Builtins", "Work"]


class Work:
    """A collective that a rank has called: what ``async_op=True`` returns.

    To the hub it is a request, but there is no message in it.

    Attributes:
        rank: whose it is.
        call: which.
        done: ticks when it was complete; ``None`` before.
        waiter: who waits for it, if anybody does.
    """

    __slots__ = ("_hub", "_results", "call", "done", "rank", "waiter")

    def __init__(self, hub: Hub, rank: Rank, call: Call, results: list[Any]) -> None:
        self._hub = hub
        self._results = results
        self.rank = rank
        self.call = call
        self.done: int | None = None
        self.waiter: Rank | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Block, in virtual time, until it is complete, or ``timeout`` ends."""
        if self.done is None:
            self._hub.wait(self, timeout)
        return True

    def is_completed(self) -> bool:
        """Whether it is complete by now; whoever asks in a loop lets the others run."""
        if self.done is None:
            self._hub.give_way(self)
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
        self.meetings: dict[str, Meeting] = {}
        self.members: dict[str, list[int]] = {}
        self.inside: dict[int, Call] = {}
        self.refused: dict[int, ForbiddenCall] = {}
        self.disagreements: dict[int, Disagreement] = {}
        self.warned: dict[tuple[int, Outside], None] = {}

    def found(self, name: str, members: list[int]) -> None:
        """A group has been made."""
        self.members[name] = members
        self.meetings[name] = Meeting(members)

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

    def join(self, call: Call) -> None:
        """A rank makes its next collective call in a group.

        Raises:
            Disagreement: it is not the one that others have made.
        """
        try:
            self.meetings[call.group].join(call)
        except Disagreement as error:
            self.disagreements.setdefault(call.rank, error)
            raise

    def open(self) -> Iterator[Call]:
        """Calls that some members of their groups have not made."""
        for meeting in self.meetings.values():
            yield from meeting.open()

    def awaited(self, rank: Rank) -> Call | None:
        """The collective that a rank waits in, or for, if it does."""
        if rank.waits is None:
            return None
        return rank.waits.call if isinstance(rank.waits, Work) else self.inside.get(rank.number)
