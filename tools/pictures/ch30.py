"""Pictures of chapter 30: the mesh of the capstone."""

from __future__ import annotations

from matplotlib.patches import FancyBboxPatch, Rectangle

from grader.report.drawing import FAINT, INK, Sheet, colour_of, tint

#: Half the width and height of a rank's box.
_HALF = (0.62, 0.3)


def _place(d: int, t: int, p: int) -> tuple[float, float]:
    return 1.35 + 4.6 * p + 1.9 * t, 2.95 - 1.45 * d


def mesh() -> Sheet:
    """Eight ranks as dp × tp × pp = 2 × 2 × 2, with the pairs that each dimension connects."""
    sheet = Sheet(9.0, 4.9)
    for p in range(2):
        left, low = _place(1, 0, p)
        sheet.axes.add_patch(
            Rectangle((left - 1.0, low - 0.62), 3.9, 2.85, fc="#f4f4f4", ec="#bbbbbb", lw=1.1)
        )
        layers = "embedding, layers 0 and 1" if p == 0 else "layers 2 and 3, head"
        sheet.text(left + 0.95, 4.5, f"stage p = {p}", 12, bold=True)
        sheet.text(left + 0.95, 4.18, layers, 10, colour=FAINT)
        for t in range(2):
            sheet.text(_place(0, t, p)[0], 3.56, f"t = {t}", 10, colour=FAINT)
        for d in range(2):
            if p == 0:
                y = _place(d, 0, p)[1] + 0.42
                sheet.text(left - 0.98, y, f"d = {d}", 10, colour=FAINT, align="left")
            (x0, y), (x1, _) = _place(d, 0, p), _place(d, 1, p)
            sheet.axes.plot([x0, x1], [y, y], color=INK, lw=4, solid_capstyle="butt", zorder=1)
        for t in range(2):
            (x, y0), (_, y1) = _place(0, t, p), _place(1, t, p)
            sheet.axes.plot([x, x], [y0, y1], color=INK, lw=1.6, ls=(0, (4, 3)), zorder=1)
    for d in range(2):
        for t in range(2):
            (x0, y0), (x1, y1) = _place(d, t, 0), _place(d, t, 1)
            bend = 0.32 if t == 0 else -0.32
            sheet.axes.annotate(
                "",
                (x1 - _HALF[0] * 0.6, y1 + bend * 0.95),
                (x0 + _HALF[0] * 0.6, y0 + bend * 0.95),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": FAINT,
                    "lw": 1.3,
                    "connectionstyle": f"arc3,rad={-0.1 if t == 0 else 0.1}",
                },
                zorder=1,
            )
    for rank in range(8):
        x, y = _place(rank // 2 % 2, rank % 2, rank // 4)
        sheet.axes.add_patch(
            FancyBboxPatch(
                (x - _HALF[0], y - _HALF[1]),
                2 * _HALF[0],
                2 * _HALF[1],
                boxstyle="round,pad=0.0,rounding_size=0.08",
                fc=tint(colour_of(rank)),
                ec=INK,
                lw=1.2,
                zorder=2,
            )
        )
        sheet.axes.text(
            x, y, f"rank {rank}", fontsize=11, ha="center", va="center", zorder=3, color=INK
        )
    for x, width, line, text in (
        (0.5, 4.0, "-", "tp: one layer, other columns"),
        (3.75, 1.6, "--", "dp: other rows of the batch"),
    ):
        sheet.axes.plot([x, x + 0.45], [0.35, 0.35], color=INK, lw=width, ls=line)
        sheet.text(x + 0.58, 0.35, text, 10, align="left")
    sheet.axes.annotate(
        "", (7.25, 0.35), (6.8, 0.35), arrowprops={"arrowstyle": "-|>", "color": FAINT, "lw": 1.3}
    )
    sheet.text(7.35, 0.35, "pp: next layers", 10, align="left")
    return sheet


PICTURES = (mesh,)
