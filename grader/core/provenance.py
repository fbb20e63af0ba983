"""Numbers that remember where they come from, through every copy and every sum.

The element ``i`` of rank ``r`` is the float64 number ``16**r + i * 2**32``.  In
a sum, each hexadecimal digit of the lower part counts how often a rank's
element went in, and the upper part is ``i`` times the number of terms.  So the
contents of any cell can be read off its value: ``A2``, ``A0+B0``, and also the
mistakes, ``A0+A0`` or ``A1+B2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

__all__ = ["MOST_RANKS", "Tag", "read", "tagged"]

#: Eight digits of four bits fill the lower 32.
MOST_RANKS = 8

#: A rank's letter.
LETTERS = "ABCDEFGH"

_SHIFT = 2**32
_MOST_PLACES = 2**15


@dataclass(frozen=True)
class Tag:
    """What a number is made of.

    Attributes:
        owners: the ranks that went into it, lowest first, each as often as it did.
        place: the index of the elements; ``None`` if elements of several were mixed.
    """

    owners: tuple[int, ...]
    place: int | None

    def __str__(self) -> str:
        place = "?" if self.place is None else str(self.place)
        if len(self.owners) <= 3:
            return "+".join(f"{LETTERS[rank]}{place}" for rank in self.owners)
        low, high = self.owners[0], self.owners[-1]
        if self.owners == tuple(range(low, high + 1)):
            return f"{LETTERS[low]}…{LETTERS[high]}{place}"
        return "".join(LETTERS[rank] for rank in self.owners) + place


def tagged(rank: int, places: Sequence[int] | range) -> torch.Tensor:
    """The elements of a rank with these indices.

    Raises:
        ValueError: there are only tags for :data:`MOST_RANKS` ranks.
    """
    if not 0 <= rank < MOST_RANKS:
        raise ValueError(f"no tag for rank {rank}: there are {MOST_RANKS}")
    return torch.tensor([float(16**rank + i * _SHIFT) for i in places], dtype=torch.float64)


def read(value: float) -> Tag | None:
    """What a number is made of; ``None`` if it is no sum of tags."""
    if not 0 < value < 2**52 or value != int(value):
        return None
    upper, lower = divmod(int(value), _SHIFT)
    owners = tuple(r for r in range(MOST_RANKS) for _ in range(lower >> 4 * r & 15))
    if not owners:
        return None
    place, rest = divmod(upper, len(owners))
    if place >= _MOST_PLACES:
        return None
    return Tag(owners, None if rest else place)
