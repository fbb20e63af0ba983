"""Pictures of chapter 05: all-gather."""

from __future__ import annotations

from collections.abc import Callable

from grader.report.drawing import FAINT, Cell, Sheet, before_after, colour_of, stacked
from tools.pictures.ch03 import gather_columns
from tools.pictures.common import N

Columns = list[list[Cell]]


def _columns() -> tuple[Columns, Columns]:
    before = [[Cell(f"x{rank}", (rank,))] for rank in range(N)]
    after = [[Cell(f"x{j}", (j,), j == rank) for j in range(N)] for rank in range(N)]
    return before, after


def all_gather() -> Sheet:
    """Everyone collects one piece from each."""
    return before_after("all-gather", *_columns())


def gather_and_all_gather() -> Sheet:
    """The same start; the list on one rank, and on all."""
    return stacked(("gather", *gather_columns()), ("all-gather", *_columns()))


def ring_strip(cell: Callable[[int, int, int], Cell], end: str) -> Sheet:
    """What each rank holds after each round, and the arrows of the next.

    ``cell(step, rank, j)`` is place ``j`` of a rank's memory; ``end`` is said
    below the last panel.
    """
    sheet = Sheet(10.4, 2.7)
    width, height, gap = 0.46, 0.34, 0.1
    for step in range(N):
        x0 = 0.3 + step * 2.55
        title = "start" if step == 0 else f"after round {step}"
        sheet.text(x0 + 1.07, 2.5, title, 10, bold=True)
        for rank in range(N):
            x = x0 + rank * (width + gap)
            sheet.rank(x, 0.72, width, N * height + 0.1, rank)
            for j in range(N):
                y = 0.77 + (N - 1 - j) * height
                place = (x + 0.04, y + 0.02, width - 0.08, height - 0.04)
                sheet.cell(*place, cell(step, rank, j))
            if step < N - 1 and rank < N - 1:
                start = (x + width / 2 + 0.04, 0.42)
                sheet.arrow(start, (x + width * 1.5 + gap - 0.04, 0.42), colour_of(5), width=1.2)
        if step < N - 1:
            left, right = x0 + width / 2, x0 + 3 * (width + gap) + width / 2
            sheet.arrow((right, 0.36), (left, 0.36), colour_of(5), bend=-0.12, width=1.2)
    sheet.text(0.3 + (N - 1) * 2.55 + 1.07, 0.3, end, 9, colour=FAINT)
    return sheet


def ring_all_gather() -> Sheet:
    """Round by round: every rank passes on what came last."""

    def cell(step: int, rank: int, j: int) -> Cell:
        age = (rank - j) % N
        return Cell(f"x{j}", (j,), still=age != step) if age <= step else Cell()

    return ring_strip(cell, "every rank has every piece")


PICTURES = (
    all_gather,
    gather_and_all_gather,
    ring_all_gather,
)
