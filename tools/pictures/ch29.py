"""Pictures of chapter 29: less communication."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.patches import Circle

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of

#: Ranks in the first picture.
_RANKS = 4


def _quantizer(sheet: Sheet, x: float, y: float) -> None:
    """Draw the place where numbers become int8."""
    sheet.axes.add_patch(Circle((x, y), 0.16, fc="white", ec=INK, lw=1.3, zorder=3))
    sheet.axes.text(x, y, "Q", fontsize=10, ha="center", va="center", zorder=4, color=INK)


def quantized_ways() -> Sheet:
    """A chunk of four ranks, summed along a ring and directly, with every quantization marked."""
    sheet = Sheet(9.0, 4.5)
    width, height = 0.95, 0.42
    sheet.text(0.15, 4.2, "along a ring: 4 quantizations", 11, bold=True, align="left")
    top, gap = 3.35, 1.95
    for rank in range(_RANKS):
        x = 0.35 + rank * gap
        cell = Cell(_sum_of(range(rank + 1)), tuple(range(rank + 1)))
        sheet.cell(x, top - height / 2, width, height, cell)
        sheet.text(x + width / 2, top - 0.42, f"rank {rank}", 10, colour=FAINT)
        end = x + gap if rank < _RANKS - 1 else x + 1.9
        sheet.arrow((x + width, top), (end, top))
        _quantizer(sheet, (x + width + end) / 2, top)
    sheet.text(0.35 + 3 * gap + 1.95, top, "to all", 10, align="left")

    sheet.text(0.15, 2.35, "directly: once there, once back", 11, bold=True, align="left")
    middle, x = 1.05, 4.2
    for place, rank in enumerate((1, 2, 3)):
        y = middle + (1 - place) * 0.72
        sheet.cell(1.6, y - height / 2, width, height, Cell(f"x{rank}", (rank,)))
        sheet.text(1.5, y, f"rank {rank}", 10, colour=FAINT, align="right")
        sheet.arrow((1.6 + width, y), (x, middle + (1 - place) * 0.12))
        _quantizer(sheet, 3.1, y + (middle + (1 - place) * 0.12 - y) * 0.34)
    sheet.cell(x, middle - height / 2, width, height, Cell(_sum_of(range(4)), (0, 1, 2, 3)))
    sheet.text(x + width / 2, middle - 0.42, "rank 0", 10, colour=FAINT)
    sheet.arrow((x + width, middle), (x + width + 1.2, middle))
    _quantizer(sheet, x + width + 0.55, middle)
    sheet.text(x + width + 1.25, middle, "to all", 10, align="left")
    sheet.text(7.05, 0.3, "Q: float32 becomes int8", 10, colour=FAINT, align="left")
    return sheet


def _sum_of(ranks: Sequence[int]) -> str:
    if len(ranks) > 3:
        return f"x{ranks[0]}+…+x{ranks[-1]}"
    return "+".join(f"x{rank}" for rank in ranks)


#: Inner steps of three ranks, from the common weights on.
_PATHS = (
    ((0.5, 0.55), (0.55, 0.1), (0.75, 0.5), (0.6, 0.2), (0.7, 0.25)),
    ((0.7, -0.1), (0.5, 0.35), (0.75, -0.2), (0.6, 0.2), (0.8, -0.1)),
    ((0.45, -0.5), (0.75, 0.0), (0.5, -0.45), (0.75, 0.1), (0.55, -0.3)),
)


def outer_step() -> Sheet:
    """Three ranks walk away from common weights; the outer step goes beyond their mean."""
    sheet = Sheet(8.6, 3.6)
    start = (1.9, 1.6)
    ends = []
    for rank, path in enumerate(_PATHS):
        x, y = start
        for dx, dy in path:
            sheet.arrow((x, y), (x + dx, y + dy), colour_of(rank), width=1.4)
            x, y = x + dx, y + dy
        ends.append((x, y))
    heights = (0.22, 0.24, -0.22)
    for rank, ((x, y), above) in enumerate(zip(ends, heights, strict=True)):
        sheet.text(x, y + above, f"rank {rank}", 10, colour=colour_of(rank), bold=True)
    mean = (sum(x for x, _ in ends) / 3, sum(y for _, y in ends) / 3)
    new = (
        start[0] + 1.75 * (mean[0] - start[0]) + 0.15,
        start[1] + 1.75 * (mean[1] - start[1]) + 0.3,
    )
    sheet.arrow(start, mean, INK, width=2.6, zorder=3)
    sheet.arrow(mean, new, INK, width=1.8, dashed=True)
    for x, y in (start, mean, new):
        sheet.axes.add_patch(Circle((x, y), 0.07, fc=INK, ec="white", lw=1, zorder=4))
    sheet.text(start[0] - 0.15, start[1] + 0.1, "common", 11, bold=True, align="right")
    sheet.text(start[0] - 0.15, start[1] - 0.12, "weights θ", 11, bold=True, align="right")
    sheet.text(mean[0], mean[1] - 0.32, "mean: θ − Δ", 11, bold=True)
    sheet.text(new[0] + 0.15, new[1], "new θ", 11, bold=True, align="left")
    middle = ((mean[0] + new[0]) / 2 + 0.3, (mean[1] + new[1]) / 2 - 0.34)
    sheet.text(*middle, "with the velocity", 10, colour=FAINT)
    return sheet


PICTURES = (quantized_ways, outer_step)
