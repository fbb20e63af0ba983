"""Pictures of chapter 03: scatter and gather."""

from __future__ import annotations

from grader.report.drawing import Cell, Sheet, before_after
from tools.pictures.common import EMPTY, ROOT_RANK, N


def _pieces(still: bool) -> list[Cell]:
    return [Cell(f"x{rank}", (rank,), still and rank == ROOT_RANK) for rank in range(N)]


def scatter_columns() -> tuple[list[list[Cell]], list[list[Cell]]]:
    """What the ranks hold before and after a scatter."""
    before = [_pieces(True) if rank == ROOT_RANK else [EMPTY] for rank in range(N)]
    after = [[Cell(f"x{rank}", (rank,), rank == ROOT_RANK)] for rank in range(N)]
    return before, after


def gather_columns() -> tuple[list[list[Cell]], list[list[Cell]]]:
    """What the ranks hold before and after a gather."""
    before = [[Cell(f"x{rank}", (rank,), rank == ROOT_RANK)] for rank in range(N)]
    after = [
        _pieces(True) if rank == ROOT_RANK else [Cell(f"x{rank}", (rank,), True)]
        for rank in range(N)
    ]
    return before, after


def scatter() -> Sheet:
    """The root hands out one piece to each."""
    return before_after("scatter", *scatter_columns())


def gather() -> Sheet:
    """The root collects one piece from each."""
    return before_after("gather", *gather_columns())


PICTURES = (
    scatter,
    gather,
)
