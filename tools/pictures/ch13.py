"""Pictures of chapter 13: cost models."""

from __future__ import annotations

import math

from grader.course.costs import crossover_bytes, ring_all_reduce_seconds, tree_all_reduce_seconds
from grader.report.drawing import FAINT, INK, Sheet, colour_of

#: The chapter's made-up network: seconds, and seconds per byte.
_ALPHA, _BETA = 10e-6, 8 / 80e9

#: Powers of ten on the axes: bytes, and seconds.
_SIZES, _SECONDS = (2, 9), (-5, 1)

_NAMES = {3: "kB", 6: "MB", 9: "GB"}
_TIMES = {-6: "µs", -3: "ms", 0: "s"}


def _named(power: int, names: dict[int, str]) -> str:
    base = max(known for known in names if known <= power)
    return f"{10 ** (power - base)} {names[base]}"


def cost_curves() -> Sheet:
    """Ring and tree over the size, for three numbers of ranks."""
    width, height, gap, left, bottom = 2.7, 2.5, 0.32, 0.85, 0.75
    sheet = Sheet(left + 3 * width + 2 * gap + 0.2, bottom + height + 0.6)

    def across(x0: float, nbytes: float) -> float:
        share = (math.log10(nbytes) - _SIZES[0]) / (_SIZES[1] - _SIZES[0])
        return x0 + share * width

    def up(seconds: float) -> float:
        share = (math.log10(seconds) - _SECONDS[0]) / (_SECONDS[1] - _SECONDS[0])
        return bottom + share * height

    exponents = [_SIZES[0] + (_SIZES[1] - _SIZES[0]) * i / 140 for i in range(141)]
    for panel, n in enumerate((8, 64, 1024)):
        x0 = left + panel * (width + gap)
        sheet.text(x0 + width / 2, bottom + height + 0.25, f"{n} ranks", 11, bold=True)
        for power in range(_SECONDS[0], _SECONDS[1] + 1):
            y = up(10.0**power)
            sheet.axes.plot([x0, x0 + width], [y, y], color="#dddddd", lw=0.8, zorder=0)
            if not panel:
                sheet.text(x0 - 0.08, y, _named(power, _TIMES), 9, colour=FAINT, align="right")
        for power in (3, 5, 7, 9):
            x = across(x0, 10.0**power)
            sheet.axes.plot([x, x], [bottom, bottom + height], color="#dddddd", lw=0.8, zorder=0)
            sheet.text(x, bottom - 0.15, _named(power, _NAMES), 9, colour=FAINT)
        for name, cost, colour, dash in (
            ("ring", ring_all_reduce_seconds, colour_of(0), "-"),
            ("tree", tree_all_reduce_seconds, colour_of(5), "--"),
        ):
            points = [(e, up(cost(n, 10**e, _ALPHA, _BETA))) for e in exponents]
            inside = [(across(x0, 10**e), y) for e, y in points if y <= bottom + height]
            sheet.axes.plot(*zip(*inside, strict=True), color=colour, ls=dash, lw=2.4)
            above = 0.16 if name == "ring" else -0.16
            sheet.text(
                x0 + 0.3, inside[0][1] + above, name, 10, bold=True, colour=colour, halo="white"
            )
        size = crossover_bytes(n, _ALPHA, _BETA)
        x, y = across(x0, size), up(tree_all_reduce_seconds(n, size, _ALPHA, _BETA))
        sheet.axes.plot([x, x], [bottom, y], color=INK, lw=1.2, ls=":")
        sheet.axes.plot([x], [y], "o", color=INK, ms=6, zorder=6)
        text = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
        sheet.text(x - 0.1, bottom + 0.16, text, 9, bold=True, align="right", halo="white")
        for line in ([x0, x0 + width], [bottom] * 2), ([x0] * 2, [bottom, bottom + height]):
            sheet.axes.plot(*line, color=INK, lw=1)
    sheet.text(left + 1.5 * width + gap, 0.22, "size of the tensor", 10)
    return sheet


PICTURES = (cost_curves,)
