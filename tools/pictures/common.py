"""What the pictures of the primitives have in common: four ranks, and a root."""

from __future__ import annotations

from grader.report.drawing import Cell

N = 4
NAMES = "ABCD"

#: The root of the pictures: not rank 0, so that nobody takes 0 for a rule.
ROOT_RANK = 1

EMPTY = Cell()


def own(rank: int, still: bool = False) -> Cell:
    """What a rank holds at first: the letter of its own."""
    return Cell(NAMES[rank], (rank,), still)
