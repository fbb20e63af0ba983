"""That all ranks of a group mean the same call: the k-th of each rank is one collective."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from grader.core.events import Signature
from grader.core.verdict import Site
from grader.trace.agreement import disagreement

__all__ = ["Call", "Disagreement", "Meeting"]


@dataclass(slots=True, eq=False)
class Call:
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

    def __init__(self, first: Call, second: Call) -> None:
        super().__init__(
            f"rank {second.rank} calls {second.kind} where rank {first.rank} calls {first.kind}"
        )
        self.calls = _by_rank(first, second)


class _Slot(dict[int, Call]):
    """The calls of one collective, by rank.

    Attributes:
        uneven: whether a rank has a number of its own for some other.
    """

    uneven = False


class Meeting:
    """The calls of one group that not all members have made yet.

    Args:
        members: global ranks, by rank in the group.
    """

    def __init__(self, members: Sequence[int]) -> None:
        self._members = members
        self._open: deque[_Slot] = deque()
        self._complete = 0
        self._calls: dict[int, int] = {}

    def join(self, call: Call) -> None:
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
        others: Iterable[Call] = islice(slot.values(), 1)
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

    def open(self) -> Iterator[Call]:
        """The calls that somebody has not made yet, in their order."""
        for slot in self._open:
            for rank in sorted(slot):
                yield slot[rank]


def _by_rank(one: Call, other: Call) -> tuple[Call, Call]:
    return (one, other) if one.rank < other.rank else (other, one)
