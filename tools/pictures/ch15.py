"""Pictures of chapter 15: data parallelism."""

from __future__ import annotations

from math import cos, pi, sin

from matplotlib.patches import Circle

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of, tint

_N = 4

#: Samples of a batch, and tokens of each.
_SAMPLES, _TOKENS = 4, 8


def batch_splits() -> Sheet:
    """One batch, cut by sample or along the sequence."""
    sheet = Sheet(8.6, 2.75)
    side, gap = 0.42, 0.12
    cuts = (
        ("by sample: data parallel", lambda sample, token: sample),
        ("along the sequence: context parallel", lambda sample, token: token * _N // _TOKENS),
    )
    for place, (title, owner) in enumerate(cuts):
        x0 = 0.5 + place * 4.2
        for sample in range(_SAMPLES):
            for token in range(_TOKENS):
                rank = owner(sample, token)
                x = x0 + token * side + (gap * rank if place else 0)
                y = 1.85 - sample * side - (0 if place else gap * rank)
                sheet.cell(x, y, side, side, Cell(str(rank), (rank,)))
        sheet.text(x0 + 4 * side, 2.5, title, 11, bold=True)
        sheet.text(x0 - 0.22, 1.25 if place else 1.05, "samples", 9, colour=FAINT)
        sheet.axes.texts[-1].set_rotation(90)
        sheet.text(
            x0 + 4 * side, 0.12, "tokens; the number says which rank has it", 9, colour=FAINT
        )
    return sheet


def server_and_ring() -> Sheet:
    """The links of a parameter server, and those of a ring, with what they carry."""
    sheet = Sheet(8.4, 3.7)
    radius = 1.15
    for x0, title, below, server in (
        (2.1, "parameter server", "rank 0 takes in 3 S and gives out 3 S", True),
        (6.3, "ring all-reduce", "every rank takes in and gives out 2 · ¾ S", False),
    ):
        sheet.text(x0, 3.5, title, 12, bold=True)
        places = [
            (
                x0 + radius * cos(pi / 2 - 2 * pi * r / _N),
                1.85 + radius * sin(pi / 2 - 2 * pi * r / _N),
            )
            for r in range(_N)
        ]
        for r, (x, y) in enumerate(places):
            peer = places[0] if server else places[(r + 1) % _N]
            if not server or r:
                _arrow(sheet, (x, y), peer)
            if server and r:
                _arrow(sheet, peer, (x, y))
        for r, (x, y) in enumerate(places):
            sheet.axes.add_patch(
                Circle((x, y), 0.3, fc=tint(colour_of(r)), ec=INK, lw=1.3, zorder=4)
            )
            sheet.text(x, y, f"{r}", 12, bold=True, halo=tint(colour_of(r)))
        sheet.text(x0, 0.2, below, 10)
    return sheet


def _arrow(sheet: Sheet, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From the rim of one circle to the rim of another, a little to the left of the middle."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    ux, uy = dx / length, dy / length
    left, rim = 0.07, 0.34
    sheet.arrow(
        (start[0] + ux * rim - uy * left, start[1] + uy * rim + ux * left),
        (end[0] - ux * rim - uy * left, end[1] - uy * rim + ux * left),
    )


#: Seconds of forward, of the backward of each layer (the last one first), of a bucket's all-reduce.
_FORWARD, _BACKWARD, _REDUCE = 1.6, (0.8, 0.8, 0.8, 0.8), 0.9


def buckets_and_backward() -> Sheet:
    """One step, with one all-reduce after backward, and with buckets during it."""
    sheet = Sheet(8.6, 3.5)
    x0, scale = 1.6, 0.78
    for top, title, bucketed in ((3.0, "after backward", False), (1.55, "in buckets", True)):
        sheet.text(0.78, top - 0.25, title, 11, bold=True)
        sheet.bar(x0, top, _FORWARD * scale, "forward", FAINT)
        at, ready = _FORWARD, []
        for number, seconds in enumerate(_BACKWARD):
            layer = len(_BACKWARD) - number
            sheet.bar(x0 + at * scale, top, seconds * scale, f"b{layer}", colour_of(2))
            at += seconds
            ready.append(at)
        free = 0.0
        for number, moment in enumerate(ready):
            start = max(moment if bucketed else ready[-1], free)
            free = start + _REDUCE
            label = f"bucket {len(ready) - number}"
            sheet.bar(x0 + start * scale, top - 0.5, _REDUCE * scale, label, colour_of(3))
        end = x0 + free * scale
        sheet.axes.plot([end, end], [top - 0.75, top + 0.25], color=INK, lw=2, ls="--", zorder=6)
        sheet.text(end, top + 0.36, "done", 10, bold=True)
    sheet.text(
        4.3,
        0.3,
        "b4 … b1: backward of layer 4 … 1;  bucket 4: all-reduce of the gradients of layer 4",
        10,
    )
    return sheet


PICTURES = (batch_splits, buckets_and_backward, server_and_ring)
