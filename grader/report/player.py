"""A film as HTML to step through, without a kernel, a network or an id.

The script finds its element by class, and all it shows is in the element, so
that the same text works in JupyterLab, in an exported page, and twice on one
page.  Where scripts do not run (a notebook that is not trusted, a page that
strips them) the rounds stand there as text.
"""

from __future__ import annotations

import html
import json
import math
from functools import cache
from importlib import resources
from typing import Any

from grader.report.drawing import FAINT, Cell, Sheet
from grader.report.frames import Arrow, Content, Frame, FrameSequence

__all__ = ["page", "player", "strip"]


# A film as a still picture: its rounds side by side. ------------------------------

_WIDTH, _HEIGHT, _GAP = 0.62, 0.24, 0.42
_MARGIN = 0.5

#: Inches: a taller picture leaves rounds out, all but the first ones and the end.
_TALLEST = 24.0

#: Inches: as wide as a notebook's column.
_PAGE = 10.0

#: Pixels per inch.
_DPI = 80


def strip(film: FrameSequence) -> bytes:
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


# The player. ----------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    return resources.files("grader.report").joinpath(name).read_text(encoding="utf-8")


def player(film: FrameSequence) -> str:
    """The film as a piece of HTML."""
    data = html.escape(json.dumps(_data(film), separators=(",", ":"), ensure_ascii=False))
    return (
        f"<style>{_asset('player.css')}</style>\n"
        # JupyterLab's own shortcuts would take the arrow keys
        f'<div class="gather-round-replay" data-lm-suppress-shortcuts="true" data-replay="{data}">'
        f"<pre>{html.escape(film.table())}</pre></div>\n"
        f"<script>{_asset('player.js')}</script>"
    )


def page(film: FrameSequence) -> str:
    """The film as a whole page."""
    title = html.escape(f"Replay of {film.title} on {film.ranks} ranks")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<style>:root { color-scheme: light dark; } body { font-family: system-ui, sans-serif;"
        " margin: 1.5em; }</style>\n"
        f"<title>{title}</title>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{player(film)}\n"
        "</main>\n</body>\n</html>\n"
    )


def _data(film: FrameSequence) -> dict[str, Any]:
    """What the script reads; contents are numbered, since few are different."""
    contents: dict[Content, int] = {}

    def number(content: Content) -> int:
        return contents.setdefault(content, len(contents))

    frames = [
        {
            "cells": [[number(cell) for cell in column] for column in frame.cells],
            "arrows": [
                [
                    a.source,
                    a.destination,
                    number(a.content),
                    a.size,
                    a.site,
                    a.leaves,
                    a.enters,
                    a.cells,
                ]
                for a in frame.arrows
            ],
        }
        for frame in film.frames
    ]
    return {
        "title": film.title,
        "ranks": film.ranks,
        "ring": film.ring,
        "headings": film.headings,
        "frames": frames,
        "contents": [[content.text, content.owners] for content in contents],
    }
