"""Algorithms for powers of two, at any number of ranks: by folding.

Of n ranks, with P the largest power of two up to n, the first 2 (n − P) fold in
pairs: the even rank of each stands aside, and hands what it has to the odd one.
What remains is P ranks, each with a *place*, for which the algorithm is written
(Thakur, Rabenseifner and Gropp 2005, section 4; MPICH does the same).
"""

from __future__ import annotations

import torch

from grader.simulation.algorithms.blocks import Blocks
from grader.simulation.algorithms.reductions import Combine
from grader.simulation.communicator import Communicator

__all__ = ["Folding", "double", "halve"]


class Folding:
    """The places of the ranks of a communicator.

    Attributes:
        power: how many places there are, a power of two.
        place: this rank's; −1 if it stands aside.
        partner: the other rank of its pair; −1 if it has none.
    """

    __slots__ = ("_pairs", "partner", "place", "power")

    def __init__(self, comm: Communicator) -> None:
        self.power = 1 << (comm.size.bit_length() - 1)
        self._pairs = comm.size - self.power
        rank = comm.rank
        if rank >= 2 * self._pairs:
            self.place, self.partner = rank - self._pairs, -1
        elif rank % 2:
            self.place, self.partner = rank // 2, rank - 1
        else:
            self.place, self.partner = -1, rank + 1

    @property
    def aside(self) -> bool:
        """Whether this rank has no place."""
        return self.place < 0

    def first(self, place: int) -> int:
        """The first rank that a place stands for; the next place's is where it ends."""
        return place + min(place, self._pairs)

    def rank(self, place: int) -> int:
        """The rank in a place."""
        return self.first(place + 1) - 1

    def blocks(self, blocks: Blocks) -> Blocks:
        """A block for every place, of blocks for every rank."""
        if not self._pairs:
            return blocks
        starts = [blocks.starts[self.first(place)] for place in range(self.power + 1)]
        return Blocks(blocks.flat, starts)


def halve(comm: Communicator, folding: Folding, blocks: Blocks, combine: Combine) -> None:
    """Recursive halving: the block of this place becomes the reduction of all places'."""
    place, distance = folding.place, folding.power // 2
    while distance:
        other = folding.rank(place ^ distance)
        keep = place & -distance
        give = keep ^ distance
        kept = blocks.span(keep, keep + distance)
        arriving = torch.empty_like(kept)
        comm.exchange(blocks.span(give, give + distance), other, arriving, other)
        combine(kept, arriving)
        distance //= 2


def double(comm: Communicator, folding: Folding, blocks: Blocks) -> None:
    """Recursive doubling: from the block of this place to the blocks of all."""
    place, distance = folding.place, 1
    while distance < folding.power:
        other = folding.rank(place ^ distance)
        own = place & -distance
        theirs = own ^ distance
        comm.exchange(
            blocks.span(own, own + distance), other, blocks.span(theirs, theirs + distance), other
        )
        distance *= 2
