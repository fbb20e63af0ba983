"""A film as a still picture: its rounds side by side."""

from __future__ import annotations

import math

from grader.report.drawing import FAINT, Cell, Sheet
from grader.report.frames import Arrow, Film, Frame

__all__ = ["strip"]

_WIDTH, _HEIGHT, _GAP = 0.62, 0.24, 0.42
_MARGIN = 0.5

#: Inches: a taller picture leaves rounds out, all but the first ones and the end.
_TALLEST = 24.0

#: Inches: as wide as a notebook's column.
_PAGE = 10.0

#: Pixels per inch.
_DPI = 80


def strip(film: Film) -> bytes:
    """The rounds as a PNG; each panel shows what ranks hold and what they send."""
    rows = max(1, sum(count for _, count in film.headings))
    wide = 2 * _MARGIN + film.ranks * _WIDTH + (film.ranks - 1) * _GAP
    high = rows * _HEIGHT + 0.85
    across = max(1, min(len(film.frames), int(_PAGE // wide)))
    room = max(2, across * int(_TALLEST // high))
    numbers = list(range(len(film.frames)))
    if len(numbers) > room:
        numbers = [*numbers[: room - 1], numbers[-1]]
    down = math.ceil(len(numbers) / across)
    sheet = Sheet(across * wide, down * high)
    for i, number in enumerate(numbers):
        left, top = i % across * wide, (down - i // across) * high
        ends = number == film.rounds
        name = "the end" if ends else f"round {number + 1} of {film.rounds}"
        sheet.text(left + wide / 2, top - 0.16, name, 9, bold=True)
        _panel(sheet, film.frames[number], film.ring, left + _MARGIN, top - 0.62)
    return sheet.small_png(_DPI)


def _panel(sheet: Sheet, frame: Frame, ring: bool, left: float, top: float) -> None:
    for rank, column in enumerate(frame.cells):
        x = left + rank * (_WIDTH + _GAP)
        sheet.text(x + _WIDTH / 2, top + 0.14, str(rank), 8, colour=FAINT)
        for row, content in enumerate(column or [None]):
            cell = Cell() if content is None else Cell(content.text, content.owners)
            sheet.cell(x, top - (row + 1) * _HEIGHT, _WIDTH, _HEIGHT, cell)
    for arrow in frame.arrows:
        _arrow(sheet, arrow, len(frame.cells) - 1 if ring else None, left, top)


def _arrow(sheet: Sheet, arrow: Arrow, last: int | None, left: float, top: float) -> None:
    """A message; on a ring of ranks up to ``last`` it may go round the back."""
    leaves = arrow.leaves if arrow.leaves is not None else arrow.enters
    enters = arrow.enters if arrow.enters is not None else arrow.leaves
    y1, y2 = (top - ((row or 0) + 0.5) * _HEIGHT for row in (leaves, enters))
    here, there = (left + r * (_WIDTH + _GAP) for r in (arrow.source, arrow.destination))
    ends = (arrow.source, arrow.destination)
    if last is not None and last > 1 and ends == (last, 0):
        sheet.arrow((here + _WIDTH, y1), (here + _WIDTH + 0.4, y1), width=1.1)
        sheet.arrow((there - 0.4, y2), (there, y2), width=1.1)
    elif last is not None and last > 1 and ends == (0, last):
        sheet.arrow((here, y1), (here - 0.4, y1), width=1.1)
        sheet.arrow((there + _WIDTH + 0.4, y2), (there + _WIDTH, y2), width=1.1)
    elif there > here:
        bend = 0.0 if arrow.destination == arrow.source + 1 else -0.25
        sheet.arrow((here + _WIDTH, y1), (there, y2), width=1.1, bend=bend)
    else:
        bend = 0.0 if arrow.destination == arrow.source - 1 else 0.25
        sheet.arrow((here, y1 - 0.07), (there + _WIDTH, y2 - 0.07), width=1.1, bend=bend)
