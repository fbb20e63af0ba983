"""Pictures of chapter 16: scale math."""

from __future__ import annotations

import math

from matplotlib.patches import Rectangle

from grader.course.sizes import dp_overlap_ratio, state_bytes
from grader.report.drawing import FAINT, INK, Sheet, colour_of, tint

#: Replicas in both pictures.
_DP = 8

#: What is kept, in the order of the stack, with colour and hatching.
_PARTS = (("weights", 0, ""), ("gradients", 1, "//"), ("optimizer", 2, ".."))


def zero_stages() -> Sheet:
    """Bytes of a parameter on one replica, without ZeRO and with each stage."""
    sheet = Sheet(8.6, 4.6)
    left, bottom, scale, width = 0.9, 0.75, 0.19, 1.15
    for mark in range(0, 17, 4):
        y = bottom + mark * scale
        sheet.axes.plot([left, left + 7.4], [y, y], color="#dddddd", lw=0.8, zorder=0)
        sheet.text(left - 0.12, y, str(mark), 9, colour=FAINT, align="right")
    sheet.text(left - 0.1, bottom + 19.2 * scale, "bytes of a parameter", 10, align="left")
    for stage in range(4):
        x, y = left + 0.25 + stage * 1.8, bottom
        state = state_bytes(1, _DP, stage)
        for (name, colour, hatch), nbytes in zip(_PARTS, state, strict=True):
            height = nbytes * scale
            edge = colour_of(colour)
            sheet.axes.add_patch(
                Rectangle((x, y), width, height, fc=tint(edge), ec=edge, lw=1.2, hatch=hatch)
            )
            label = f"{name} {nbytes:g}"
            if height > 0.25:
                sheet.text(x + width / 2, y + height / 2, label, 9, halo="white")
            y += height
        if stage:
            small = [f"{nbytes:g}" for nbytes in state]
            sheet.text(x + width / 2, y + 0.42, " + ".join(small), 9)
        sheet.text(x + width / 2, y + 0.2, f"{state.total:g} bytes", 11, bold=True)
        name = f"ZeRO-{stage}" if stage else "without ZeRO"
        sheet.text(x + width / 2, bottom - 0.2, name, 11, bold=True)
    sheet.text(left + 3.7, 0.22, f"on each of {_DP} replicas", 10, colour=FAINT)
    return sheet


#: The chapter's device, and its links: operations and bytes a second.
_PEAK, _LINKS = 989e12, (("inside, 450 GB/s", 450e9, 0, "-"), ("outside, 50 GB/s", 50e9, 5, "--"))

#: Exponents on the axes: tokens as powers of 2, ratios as powers of 10.
_TOKENS, _RATIOS = (8, 18), (-3, 2)


def overlap_tokens() -> Sheet:
    """The ratio of data parallelism over the tokens of a replica, for two links."""
    sheet = Sheet(8.0, 4.4)
    left, bottom, width, height = 1.0, 0.85, 6.6, 3.1

    def across(tokens: float) -> float:
        return left + (math.log2(tokens) - _TOKENS[0]) / (_TOKENS[1] - _TOKENS[0]) * width

    def up(ratio: float) -> float:
        return bottom + (math.log10(ratio) - _RATIOS[0]) / (_RATIOS[1] - _RATIOS[0]) * height

    sheet.axes.add_patch(
        Rectangle((left, bottom), width, up(1) - bottom, fc=tint(colour_of(2), 0.15), lw=0)
    )
    for power in range(_RATIOS[0], _RATIOS[1] + 1):
        y = up(10.0**power)
        sheet.axes.plot([left, left + width], [y, y], color="#dddddd", lw=0.8)
        sheet.text(left - 0.1, y, f"{10.0**power:g}", 9, colour=FAINT, align="right")
    for power in range(_TOKENS[0], _TOKENS[1] + 1, 2):
        x = across(2.0**power)
        sheet.axes.plot([x, x], [bottom, bottom + height], color="#dddddd", lw=0.8)
        sheet.text(x, bottom - 0.17, f"{2**power:,}", 9, colour=FAINT)
    sheet.axes.plot([left, left + width], [up(1)] * 2, color=INK, lw=1.6)
    sheet.text(left + 0.1, up(1) - 0.17, "can be hidden", 10, align="left")
    sheet.text(left + width - 0.1, up(1) + 0.17, "too long to hide", 10, align="right")
    for name, bandwidth, colour, dash in _LINKS:
        ends = []
        for power in (_TOKENS[0], _TOKENS[1]):
            ratio = dp_overlap_ratio(2**power, _DP, _PEAK, bandwidth, 2)
            ends.append((across(2.0**power), up(ratio)))
        sheet.axes.plot(*zip(*ends, strict=True), color=colour_of(colour), ls=dash, lw=2.4)
        enough = dp_overlap_ratio(1, _DP, _PEAK, bandwidth, 2)
        sheet.axes.plot([across(enough)], [up(1)], "o", color=INK, ms=6, zorder=6)
        sheet.text(across(enough) + 0.15, up(1) + 0.17, f"{enough:,.0f} tokens", 10, bold=True,
                   align="left", halo="white")  # fmt: skip
        start = 60_000
        y = up(dp_overlap_ratio(start, _DP, _PEAK, bandwidth, 2))
        sheet.text(across(start), y - 0.13, name, 10, bold=True, colour=colour_of(colour),
                   align="right")  # fmt: skip
    sheet.text(left + width / 2, 0.27, f"tokens of a replica, {_DP} replicas", 10)
    sheet.text(0.1, bottom + height + 0.22, "sending / computing", 10, align="left")
    return sheet


PICTURES = (zero_stages, overlap_tokens)
