"""Pictures of chapter 03: scatter and gather."""

from __future__ import annotations

from grader.pictures.drawing import Cell, Sheet, before_after
from tools.pictures.common import EMPTY, ROOT_RANK, N


def _pieces(still: bool) -> list[Cell]:
    return [Cell(f"x{rank}", (rank,), still and rank == ROOT_RANK) for rank in range(N)]


def scatter() -> Sheet:
    """The root hands out one piece to each."""
    before = [_pieces(True) if rank == ROOT_RANK else [EMPTY] for rank in range(N)]
    after = [[Cell(f"x{rank}", (rank,), rank == ROOT_RANK)] for rank in range(N)]
    return before_after("scatter", before, after)


def gather() -> Sheet:
    """The root collects one piece from each."""
    before = [[Cell(f"x{rank}", (rank,), rank == ROOT_RANK)] for rank in range(N)]
    after = [
        _pieces(True) if rank == ROOT_RANK else [Cell(f"x{rank}", (rank,), True)]
        for rank in range(N)
    ]
    return before_after("gather", before, after)


PICTURES = (
    scatter,
    gather,
)
