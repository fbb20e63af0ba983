"""Pictures of chapter 28: expert parallelism."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from grader.report.drawing import FAINT, Cell, Sheet, colour_of

#: The expert that each of six tokens wants, of three experts with room for two.
_WANTED = (0, 1, 0, 0, 0, 2)
_ROOM = 2

_WIDTH, _HEIGHT = 0.44, 0.34


def _empty(sheet: Sheet, x: float, y: float) -> None:
    """Draw a place that nothing takes."""
    sheet.axes.add_patch(
        Rectangle((x, y), _WIDTH, _HEIGHT, fc="none", ec="#bbbbbb", lw=0.8, ls=(0, (2, 2)))
    )


def expert_capacity() -> Sheet:
    """Six tokens, three experts with two places each, and two tokens that find theirs full."""
    sheet = Sheet(7.4, 3.5)
    top, step, right = 2.75, 0.48, 4.4
    taken = [0] * 3
    sheet.text(0.95, top + 0.55, "tokens", 10, bold=True)
    sheet.text(right + 0.5, top + 0.55, "two places each", 10, bold=True)
    for e in range(3):
        y = top - 0.15 - e * 1.0
        sheet.text(right - 0.12, y, f"expert {e}", 10, align="right")
        for place in range(_ROOM):
            _empty(sheet, right + place * (_WIDTH + 0.06), y - _HEIGHT / 2)
    for t, e in enumerate(_WANTED):
        y, goal = top - t * step, top - 0.15 - e * 1.0
        full = taken[e] == _ROOM
        sheet.cell(0.72, y - _HEIGHT / 2, _WIDTH, _HEIGHT, Cell(str(t), (e,)))
        colour = FAINT if full else colour_of(e)
        sheet.arrow((1.24, y), (right - 0.85, goal), colour=colour, width=1.3, dashed=full)
        if not full:
            x = right + taken[e] * (_WIDTH + 0.06)
            sheet.cell(x, goal - _HEIGHT / 2, _WIDTH, _HEIGHT, Cell(str(t), (e,)))
            taken[e] += 1
    sheet.text(right + 1.15, top - 0.15, "3 and 4 are dropped", 9, colour=FAINT, align="left")
    return sheet


#: Names of the tokens of two ranks, and their experts; rank 0 has experts 0 and 1.
_NAMES = ("ABCD", "PQRS")
_EXPERTS = ((1, 2, -1, 3), (3, 0, 2, 1))


def expert_dispatch() -> Sheet:
    """Tokens of two ranks are sorted, sent, and regrouped by expert where they arrive."""
    sheet = Sheet(10.5, 3.2)
    top, lane = 2.3, 1.5
    columns = (0.75, 3.15, 6.05, 8.3)
    titles = ("tokens", "sorted by expert", "as they arrive", "regrouped")
    for x, title in zip(columns, titles, strict=True):
        sheet.text(x + 0.97, top + 0.66, title, 10, bold=True)
    ordered = [
        sorted((e, name, r) for name, e in zip(_NAMES[r], _EXPERTS[r], strict=True) if e >= 0)
        for r in range(2)
    ]
    for r in range(2):
        y = top - r * lane
        sheet.text(0.3, y, f"rank {r}", 10, bold=True)
        tokens = [(e, name, r) for name, e in zip(_NAMES[r], _EXPERTS[r], strict=True)]
        arrived = [row for source in ordered for row in source if row[0] // 2 == r]
        grouped = sorted(arrived, key=lambda row: row[0])
        for x0, rows in zip(columns, (tokens, ordered[r], arrived, grouped), strict=True):
            for i, (e, name, source) in enumerate(rows):
                x = x0 + i * (_WIDTH + 0.06)
                sheet.cell(x, y - _HEIGHT / 2, _WIDTH, _HEIGHT, Cell(name, (source,)))
                label = f"{e}" if e >= 0 else "−1"
                sheet.text(x + _WIDTH / 2, y + 0.32, label, 8.5, colour=FAINT)
    for src in range(2):
        for dst in range(2):
            sheet.arrow(
                (5.2, top - src * lane), (5.97, top - dst * lane), colour=colour_of(src), width=1.3
            )
    sheet.text(5.6, top + 0.32, "dispatch", 9, colour=FAINT)
    sheet.text(5.25, 0.22, "above each token: its expert", 9, colour=FAINT)
    return sheet


PICTURES = (expert_capacity, expert_dispatch)
