"""Pictures of chapter 12: deadlock clinic."""

from __future__ import annotations

import math

from grader.report.drawing import FAINT, INK, Cell, Sheet, colour_of

#: Palette entries: vermilion for ranks that are stuck, green for ranks that can go on.
_STUCK, _FREE = 5, 2

Point = tuple[float, float]


def _edge(sheet: Sheet, start: Point, end: Point, colour: str = INK, bend: float = 0.0) -> None:
    """An arrow from rank to rank, from border to border."""
    length = math.dist(start, end)
    dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    free = min(0.4 / max(abs(dx), 1e-9), 0.32 / max(abs(dy), 1e-9))  # just outside of the box
    sheet.arrow(
        (start[0] + free * dx, start[1] + free * dy),
        (end[0] - free * dx, end[1] - free * dy),
        colour=colour,
        bend=bend,
    )


def _node(sheet: Sheet, at: Point, rank: int, stuck: bool, text: str = "") -> None:
    owner = _STUCK if stuck else _FREE
    sheet.cell(at[0] - 0.32, at[1] - 0.24, 0.64, 0.48, Cell(str(rank), (owner,)))
    if text:
        sheet.text(at[0], at[1] - 0.42, text, 9, colour=FAINT)


def wait_for_graph() -> Sheet:
    """A circle, those that wait for it, and a chain that will go on."""
    sheet = Sheet(8, 3.3)
    places: dict[int, Point] = {
        0: (0.8, 2.4), 1: (2.1, 1.6), 2: (3.6, 2.4), 3: (3.6, 0.8), 4: (0.8, 0.8),
        5: (5.3, 1.6), 6: (6.4, 1.6), 7: (7.5, 1.6),
    }  # fmt: skip
    red, green = colour_of(_STUCK), colour_of(_FREE)
    for start, end in ((1, 2), (2, 3), (3, 1), (0, 1), (4, 1)):
        _edge(sheet, places[start], places[end], colour=red)
    for start, end in ((5, 6), (6, 7)):
        _edge(sheet, places[start], places[end], colour=green)
    for rank, at in places.items():
        _node(sheet, at, rank, stuck=rank < 5)
    sheet.text(7.5, 1.16, "runs", 10, colour=FAINT)
    sheet.text(2.2, 3.1, "✗ stuck: 0, 1, 2, 3, 4", 11, bold=True)
    sheet.text(6.4, 3.1, "✓ can go on: 5, 6, 7", 11, bold=True)
    sheet.text(3.1, 1.6, "the cycle", 10, colour=FAINT)
    sheet.text(0.8, 1.6, "wait for it", 10, colour=FAINT)
    sheet.axes.plot([4.5, 4.5], [0.3, 3.0], color="#cccccc", lw=1)
    return sheet


def and_or() -> Sheet:
    """A receive from any rank needs one live rank, a collective needs all."""
    sheet = Sheet(8, 3.3)
    panels = (
        (0.0, "OR: rank 0 receives from any rank", "✓ rank 3 is enough", False),
        (4.0, "AND: ranks 0 and 3 are in all_reduce", "✗ all four are stuck", True),
    )
    red, green = colour_of(_STUCK), colour_of(_FREE)
    for x0, title, verdict, needs_all in panels:
        zero, one, two, three = (x0 + 0.9, 2.4), (x0 + 2.9, 2.4), (x0 + 2.9, 0.85), (x0 + 0.9, 0.85)
        sheet.text(x0 + 2.0, 3.08, title, 10, bold=True)
        _edge(sheet, one, two, colour=red, bend=-0.3)
        _edge(sheet, two, one, colour=red, bend=-0.3)
        for goal in (one, two):
            _edge(sheet, zero, goal, colour=red if needs_all else FAINT)
        if needs_all:
            for goal in (one, two):
                _edge(sheet, three, goal, colour=red)
        else:
            _edge(sheet, zero, three, colour=green)
        for rank, at in enumerate((zero, one, two, three)):
            _node(sheet, at, rank, stuck=needs_all or rank in (1, 2))
        if not needs_all:
            sheet.text(three[0] + 0.65, three[1], "runs", 10, colour=FAINT)
        sheet.text(x0 + 2.0, 0.14, verdict, 10, bold=True)
    sheet.axes.plot([4.0, 4.0], [0.1, 3.1], color="#cccccc", lw=1)
    return sheet


def who_complains_first() -> Sheet:
    """A chain of ranks with timeouts: the first to complain is the first that waited."""
    sheet = Sheet(8, 3.2)
    x0, scale, limit = 1.1, 0.78, 5.0
    waits = ((0.5, "waits for rank 1"), (1.4, "waits for rank 2"), (2.6, "waits for rank 3"))
    for rank, (began, text) in enumerate(waits):
        y = 2.6 - rank * 0.55
        sheet.text(0.55, y, f"rank {rank}", 11, bold=True)
        sheet.bar(x0, y, began * scale, "", FAINT)
        sheet.bar(x0 + began * scale, y, limit * scale, text, colour_of(1))
        end = x0 + (began + limit) * scale
        sheet.axes.plot([end, end], [y - 0.24, y + 0.24], color=INK, lw=2.4, zorder=5)
        sheet.text(end + 0.12, y, f"timeout {rank + 1}", 9, bold=rank == 0, align="left")
    y = 2.6 - 3 * 0.55
    sheet.text(0.55, y, "rank 3", 11, bold=True)
    text = "an endless loop: the culprit never waits, and so never complains"
    sheet.bar(x0, y, 8.1 * scale, text, colour_of(_STUCK))
    sheet.arrow((x0, 0.42), (7.6, 0.42), colour=FAINT, width=1)
    sheet.text(7.35, 0.22, "time", 9, colour=FAINT)
    return sheet


PICTURES = (
    wait_for_graph,
    and_or,
    who_complains_first,
)
