"""That all ranks of a group mean the same call: the k-th of each rank is one collective."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Call", "Disagreement", "Meeting"]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A rank's call of a collective.

    Attributes:
        rank: the global rank.
        kind: name of the collective.
        group: name of the process group.
        root: global rank, or −1 without one.
        detail: what else all ranks have to agree on, such as the reduction.
        count, nbytes, dtype: of the tensor that is of one size on all ranks, if one is.
        file, line: the student's.
    """

    rank: int
    kind: str
    group: str
    root: int
    detail: str
    count: int
    nbytes: int
    dtype: str
    file: str
    line: int

    def agrees_with(self, other: Call) -> bool:
        """Whether the two can be calls of one collective."""
        return (
            self.kind == other.kind
            and self.count == other.count
            and self.dtype == other.dtype
            and self.root == other.root
            and self.detail == other.detail
        )


class Disagreement(RuntimeError):
    """Two ranks are in different collectives, or mean different things by one."""

    def __init__(self, first: Call, second: Call) -> None:
        super().__init__(
            f"rank {second.rank} calls {second.kind} where rank {first.rank} calls {first.kind}"
        )
        self.calls = sorted((first, second), key=lambda call: call.rank)


class Meeting:
    """The calls of one group that not all members have made yet.

    Args:
        size: how many members there are.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._open: deque[dict[int, Call]] = deque()
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
            self._open.append({})
        slot = self._open[place]
        slot[call.rank] = call
        first = next(iter(slot.values()))
        if not first.agrees_with(call):
            raise Disagreement(first, call)
        while self._open and len(self._open[0]) == self._size:
            self._open.popleft()
            self._complete += 1

    def open(self) -> Iterator[Call]:
        """The calls that somebody has not made yet, in their order."""
        for slot in self._open:
            for rank in sorted(slot):
                yield slot[rank]
