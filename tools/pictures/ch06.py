"""Pictures of chapter 06: reduce-scatter."""

from __future__ import annotations

from grader.report.drawing import Cell, Sheet, before_after, stacked
from tools.pictures.ch03 import scatter_columns
from tools.pictures.ch05 import ring_strip
from tools.pictures.common import NAMES, N

Columns = list[list[Cell]]


def _columns() -> tuple[Columns, Columns]:
    before = [
        [Cell(f"{NAMES[rank]}{j}", (rank,), j == rank) for j in range(N)] for rank in range(N)
    ]
    after = [[Cell(f"Σ{rank}", tuple(range(N)))] for rank in range(N)]
    return before, after


def reduce_scatter() -> Sheet:
    """Chunk j of everyone is summed, on rank j."""
    return before_after("reduce-\nscatter", *_columns())


def scatter_and_reduce_scatter() -> Sheet:
    """The same end: chunk r on rank r; of one rank's list, or of the sum of all lists."""
    return stacked(("scatter", *scatter_columns()), ("reduce-\nscatter", *_columns()))


def ring_reduce_scatter() -> Sheet:
    """Each chunk goes from rank to rank, and grows."""

    def cell(step: int, rank: int, j: int) -> Cell:
        # chunk j starts on rank j + 1, and rank j + 1 + k adds its own in round k
        place = (rank - j - 1) % N
        if place < step:
            return Cell()
        if place > step:
            return Cell(str(j), (rank,), still=True)
        owners = tuple(sorted((j + 1 + k) % N for k in range(step + 1)))
        return Cell(f"Σ{j}" if len(owners) == N else str(j), owners)

    return ring_strip(cell, "chunk r is complete on rank r")


PICTURES = (
    reduce_scatter,
    scatter_and_reduce_scatter,
    ring_reduce_scatter,
)
