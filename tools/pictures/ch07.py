"""Pictures of chapter 07: all-reduce."""

from __future__ import annotations

from collections.abc import Sequence

from grader.report.drawing import FAINT, Cell, Sheet, before_after
from tools.pictures.common import EMPTY, NAMES, ROOT_RANK, N, own

TOTAL = Cell("+".join(NAMES), tuple(range(N)))

WIDTH, HEIGHT, GAP = 0.74, 0.36, 0.16
BLOCK = N * (WIDTH + GAP) - GAP


def all_reduce() -> Sheet:
    """Everyone ends with the sum."""
    return before_after("all-reduce", [[own(rank)] for rank in range(N)], [[TOTAL]] * N)


def _ranks(sheet: Sheet, x0: float, y: float, columns: Sequence[Sequence[Cell]]) -> None:
    """Ranks side by side with what they hold."""
    rows = len(columns[0])
    for rank, column in enumerate(columns):
        x = x0 + rank * (WIDTH + GAP)
        sheet.rank(x, y, WIDTH, rows * HEIGHT + 0.1, rank)
        for i, cell in enumerate(column):
            low = y + 0.07 + (rows - 1 - i) * HEIGHT
            sheet.cell(x + 0.05, low, WIDTH - 0.1, HEIGHT - 0.04, cell)


def reduce_and_all_reduce() -> Sheet:
    """The same start; one rank has the sum, or all have."""
    sheet = Sheet(2 * BLOCK + 1.0, 2.95)
    left, right = 0.3, BLOCK + 0.7
    middle = left + (right - left) / 2
    _ranks(sheet, middle, 2.2, [[own(rank)] for rank in range(N)])
    reduced = [[TOTAL if rank == ROOT_RANK else own(rank, True)] for rank in range(N)]
    _ranks(sheet, left, 0.42, reduced)
    _ranks(sheet, right, 0.42, [[TOTAL]] * N)
    for x0, side, name in ((left, -1, "reduce to rank 1"), (right, 1, "all-reduce")):
        centre = x0 + BLOCK / 2
        start = middle + BLOCK / 2 + side * 0.7
        sheet.arrow((start, 1.85), (centre, 1.08), width=2.2)
        sheet.text(centre + side * 0.55, 1.55, name, 10, bold=True)
    return sheet


def all_reduce_identity() -> Sheet:
    """A reduce-scatter, then an all-gather: all-reduce in three stages."""
    gap = 1.35
    height = N * HEIGHT + 1.2
    sheet = Sheet(3 * BLOCK + 2 * gap + 0.5, height)
    start = [[Cell(f"{NAMES[r]}{i}", (r,), i == r) for i in range(N)] for r in range(N)]
    everyone = tuple(range(N))
    owned = [[Cell(f"Σ{i}", everyone) if i == r else EMPTY for i in range(N)] for r in range(N)]
    whole = [[Cell(f"Σ{i}", everyone, i == r) for i in range(N)] for r in range(N)]
    stages = (
        ("each rank holds its own four pieces", start, "reduce-scatter"),
        ("each rank holds one piece of the sum", owned, "all-gather"),
        ("each rank holds the whole sum", whole, ""),
    )
    for i, (title, columns, step) in enumerate(stages):
        x0 = 0.25 + i * (BLOCK + gap)
        sheet.text(x0 + BLOCK / 2, height - 0.25, title, 10, colour=FAINT)
        _ranks(sheet, x0, 0.42, columns)
        if step:
            middle = x0 + BLOCK + gap / 2
            sheet.arrow((middle - 0.4, height / 2), (middle + 0.4, height / 2), width=2.2)
            sheet.text(middle, height / 2 + 0.25, step, 10, bold=True)
    return sheet


PICTURES = (
    all_reduce,
    reduce_and_all_reduce,
    all_reduce_identity,
)
