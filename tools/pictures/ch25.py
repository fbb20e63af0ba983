"""Pictures of chapter 25: pipelines."""

from __future__ import annotations

from matplotlib.patches import FancyArrowPatch, Rectangle

from grader.report.drawing import FAINT, INK, Sheet, colour_of, tint

#: Ranks in both pictures, and layers in the first.
_RANKS, _LAYERS = 4, 8


def _layer(sheet: Sheet, x: float, y: float, size: tuple[float, float], rank: int, n: int) -> None:
    edge = colour_of(rank)
    sheet.axes.add_patch(Rectangle((x, y), *size, fc=tint(edge), ec=edge, lw=1.2))
    sheet.text(x + size[0] / 2, y + size[1] / 2, str(n), 10)


def _arrow(sheet: Sheet, start: float, end: float, y: float, dashed: bool) -> None:
    sheet.axes.add_patch(
        FancyArrowPatch(
            (start, y), (end, y), arrowstyle="-|>", mutation_scale=12, lw=1.4, color=INK,
            ls=(0, (4, 2)) if dashed else "solid", shrinkA=0, shrinkB=0,
        )
    )  # fmt: skip


def pipeline_stages() -> Sheet:
    """Eight layers on four ranks: activations go up, gradients come back."""
    sheet = Sheet(7.75, 2.4)
    left, y, size, gap = 0.5, 0.95, (0.55, 0.8), 0.85
    for rank in range(_RANKS):
        x = left + rank * (2 * size[0] + gap)
        for k in range(2):
            _layer(sheet, x + k * size[0], y, size, rank, 2 * rank + k + 1)
        sheet.text(x + size[0], y + 1.1, f"rank {rank}: stage {rank}", 10, bold=True)
        if rank < _RANKS - 1:
            start, end = x + 2 * size[0] + 0.08, x + 2 * size[0] + gap - 0.08
            _arrow(sheet, start, end, y + 0.58, dashed=False)
            _arrow(sheet, end, start, y + 0.22, dashed=True)
    middle = left + (_RANKS * (2 * size[0] + gap) - gap) / 2
    sheet.text(
        middle, 0.42, "solid: activations, forward        dashed: their gradients, backward", 10,
        colour=FAINT,
    )  # fmt: skip
    return sheet


def pipeline_interleaved() -> Sheet:
    """Sixteen layers on four ranks: in one piece each, and in two."""
    sheet = Sheet(8.8, 2.35)
    left, size = 2.0, (0.4, 0.5)
    rows = (
        ("one stage each", [layer // 4 for layer in range(16)]),
        ("two stages each", [layer // 2 % 4 for layer in range(16)]),
    )
    for row, (name, ranks) in enumerate(rows):
        y = 1.5 - 0.85 * row
        sheet.text(left - 0.15, y + size[1] / 2, name, 10, bold=True, align="right")
        for layer, rank in enumerate(ranks):
            _layer(sheet, left + layer * size[0], y, size, rank, layer + 1)
    for rank in range(_RANKS):
        x = left + rank * 1.6
        sheet.axes.plot([x, x + 0.3], [0.32, 0.32], color=colour_of(rank), lw=5)
        sheet.text(x + 0.42, 0.32, f"rank {rank}", 10, align="left")
    return sheet


PICTURES = (pipeline_stages, pipeline_interleaved)
