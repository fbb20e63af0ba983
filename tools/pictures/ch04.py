"""Pictures of chapter 04: reduce."""

from __future__ import annotations

from grader.report.drawing import FAINT, Cell, Sheet, before_after, colour_of
from tools.pictures.common import NAMES, ROOT_RANK, N, own


def reduce() -> Sheet:
    """The root ends with the sum; the others keep what they had."""
    before = [[own(rank, rank == ROOT_RANK)] for rank in range(N)]
    total = Cell("+".join(NAMES), tuple(range(N)))
    after = [[total if rank == ROOT_RANK else own(rank, True)] for rank in range(N)]
    return before_after("reduce", before, after)


def reduce_tree() -> Sheet:
    """A sum on a binomial tree, neighbours first: partial sums are of consecutive ranks."""
    sheet, size = Sheet(8, 2.75), 8
    xs = [0.9 + rank * 0.92 for rank in range(size)]
    contents: list[set[int]] = [{rank} for rank in range(size)]
    rounds = [[(r + step, r) for r in range(0, size, 2 * step)] for step in (1, 2, 4)]
    for i, messages in enumerate([[], *rounds]):
        y = 2.3 - i * 0.66
        sheet.text(0.3, y, "start" if i == 0 else f"round {i}", 8, colour=FAINT)
        for src, dst in messages:
            contents[dst] |= contents[src]
            contents[src] = set()
            sheet.arrow((xs[src], y + 0.46), (xs[dst] + 0.05, y + 0.18), colour=colour_of(5))
        for rank, owners in enumerate(contents):
            low, high = (min(owners), max(owners)) if owners else (0, 0)
            text = "" if not owners else str(low) if low == high else f"{low}…{high}"
            cell = Cell(text, tuple(sorted(owners)))
            sheet.cell(xs[rank] - 0.34, y - 0.17, 0.68, 0.34, cell)
    return sheet


PICTURES = (
    reduce,
    reduce_tree,
)
