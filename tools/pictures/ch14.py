"""Pictures of chapter 14: bandwidth."""

from __future__ import annotations

from grader.report.drawing import FAINT, INK, Sheet, colour_of

#: Seconds of the calls of each rank: two to warm up, then three that are timed.
_CALLS = ((1.3, 0.9, 0.7, 0.7, 0.7), (0.9, 0.8, 0.9, 1.0, 1.0), (0.9, 0.7, 0.8, 0.8, 0.7))

_WARMUP = 2


def timing() -> Sheet:
    """Warm up, line up, measure; the slowest rank's time counts."""
    sheet = Sheet(8.4, 3.6)
    x0, scale = 1.1, 1.15
    door = x0 + max(sum(calls[:_WARMUP]) for calls in _CALLS) * scale
    slowest = max(sum(calls[_WARMUP:]) for calls in _CALLS)
    for rank, calls in enumerate(_CALLS):
        y = 2.75 - rank * 0.65
        sheet.text(0.55, y, f"rank {rank}", 11, bold=True)
        x = x0
        for number, seconds in enumerate(calls):
            timed = number >= _WARMUP
            if number == _WARMUP:
                if door - x > 0.3:
                    sheet.bar(x, y, door - x, "waits", colour_of(1))
                x = door
            label = f"call {number - _WARMUP + 1}" if timed else "warm-up"
            sheet.bar(x, y, seconds * scale, label, colour_of(2) if timed else FAINT)
            x += seconds * scale
        if sum(calls[_WARMUP:]) == slowest:
            end = x
    for x, text in ((door, "barrier, then the clock starts"), (end, "the slowest is done")):
        sheet.axes.plot([x, x], [1.1, 3.1], color=INK, lw=2, ls="--", zorder=6)
        sheet.text(x, 3.3, text, 10, bold=True)
    sheet.arrow((door, 0.8), (end, 0.8), colour=INK)
    sheet.arrow((end, 0.8), (door, 0.8), colour=INK)
    sheet.text((door + end) / 2, 0.5, "divided by the number of calls: seconds per call", 10)
    return sheet


PICTURES = (timing,)
