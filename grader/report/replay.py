"""A watched run, round by round: what every rank holds, what travels, and how that is shown.

A round is a unit of time of the replay in :mod:`grader.trace.trace`.  What a
rank holds after a round is what was last seen in its tensors before it finished
a message of a later one, so sums that it makes in place belong to the round
whose message brought the term.

The rounds are shown as HTML to step through, without a kernel, a network or an id.  The
script finds its element by class, and all it shows is in the element, so that the same text
works in JupyterLab, in an exported page, and twice on one page.  Where scripts do not run (a
notebook that is not trusted, a page that strips them) the rounds are there as text.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from grader.core.events import Held, Seen
from grader.core.values import Tag, show, tag_of
from grader.report.drawing import FAINT, Cell, Sheet
from grader.trace.trace import Operation, Trace

__all__ = [
    "Arrow",
    "Content",
    "Frame",
    "FrameSequence",
    "MOST_CELLS",
    "film",
    "page",
    "player",
    "strip",
]


# The rounds as data. --------------------------------------------------------------

#: Largest number of cells drawn for a rank.
MOST_CELLS = 32


@dataclass(frozen=True)
class Content:
    """The content of a cell or of a message.

    Attributes:
        text: as it is written.
        owners: ranks whose data is in it, for the colour; none if unknown.
    """

    text: str = ""
    owners: tuple[int, ...] = ()


@dataclass(frozen=True)
class Arrow:
    """A message of a round.

    Attributes:
        source, destination: ranks.
        content: what it carries.
        size: "2 × float32 (8 bytes)".
        site: the line that sent it.
        leaves, enters: number of the cell in the source's and the
            destination's column where it begins and ends, if that is drawn.
        cells: how many cells it takes from there.
    """

    source: int
    destination: int
    content: Content
    size: str
    site: str
    leaves: int | None
    enters: int | None
    cells: int


@dataclass(frozen=True)
class Frame:
    """The state at one step.

    Attributes:
        cells: for each rank its column of cells, before the round.
        arrows: the messages of the round.
    """

    cells: tuple[tuple[Content, ...], ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class FrameSequence:
    """A run: a frame for every round, and one of how it ends.

    Attributes:
        headings: what the cells of every column are, one for each group of
            cells: ("argument", 4), ("result", 4).
        frames: the rounds; the last has no messages.
        ring: whether ranks talk to their neighbours on a ring alone.
    """

    title: str
    headings: tuple[tuple[str, int], ...]
    frames: tuple[Frame, ...]
    ring: bool = False

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.frames[0].cells)

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.frames) - 1

    def table(self) -> str:
        """Return the rounds as text, one line each."""
        lines = []
        for number, frame in enumerate(self.frames[:-1], 1):
            routes = [f"{a.source}→{a.destination} {a.content.text}" for a in frame.arrows]
            lines.append(f"round {number}:  " + ",  ".join(routes))
        for rank, column in enumerate(self.frames[-1].cells):
            cells = [cell.text or "·" for cell in column]
            if cells:
                lines.append(f"rank {rank} ends with  {' '.join(cells)}")
        return "\n".join(lines) or "no messages"


@dataclass(frozen=True)
class _Region:
    """Elements that are drawn as cells."""

    buffer: int
    offset: int
    count: int
    role: str


def film(trace: Trace, title: str, tags: bool) -> FrameSequence:
    """Return the rounds of a watched run.

    Args:
        trace: of a run with ``watched`` set.
        title: name of the function that ran.
        tags: whether the values are tags, see :class:`grader.core.values.Tag`.
    """
    content = _tag_content if tags else _number_content
    rounds = trace.traffic.rounds
    columns = [_Column(trace, rank, content) for rank in range(trace.world_size)]
    frames = []
    for number in range(rounds + 1):
        arrows = tuple(_arrows(trace, number, columns)) if number < rounds else ()
        frames.append(Frame(tuple(column.cells(number) for column in columns), arrows))
    return FrameSequence(title, _headings(columns), tuple(frames), not trace.strangers())


def _headings(columns: Sequence[_Column]) -> tuple[tuple[str, int], ...]:
    """Return the groups of cells of the tallest column."""
    tallest = max(columns, key=lambda column: column.height)
    found: list[tuple[str, int]] = []
    for region in tallest.regions:
        if found and found[-1][0] == region.role:
            found[-1] = (region.role, found[-1][1] + region.count)
        else:
            found.append((region.role, region.count))
    return tuple(found)


class _Column:
    """One rank's column of cells, at any round."""

    def __init__(self, trace: Trace, rank: int, content: Callable[[float], Content]) -> None:
        self._content = content
        snapshots = trace.tensor_snapshots[rank] if trace.tensor_snapshots else ()
        self.regions = list(_regions(snapshots))
        self.height = sum(region.count for region in self.regions)
        finished = sorted(
            (op.done, start + 1)
            for op in trace.operations[rank]
            if op.is_message and op.done is not None and (start := trace.start(op)) is not None
        )
        self._seen = [
            (max((after for done, after in finished if done <= seen.time), default=0), seen)
            for seen in snapshots
            if isinstance(seen, Seen)
        ]

    def cells(self, number: int) -> tuple[Content, ...]:
        """Return what the rank holds after ``number`` rounds."""
        memory: dict[int, list[float]] = {}
        for after, seen in self._seen:
            if after <= number:
                memory[seen.buffer] = seen.values
        found: list[Content] = []
        for region in self.regions:
            values = memory.get(region.buffer)
            found += [
                self._content(values[region.offset + i]) if values else Content()
                for i in range(region.count)
            ]
        return tuple(found)

    def sent(self, op: Operation) -> tuple[Content, ...]:
        """Return the content of one of its messages, as it was when it was posted."""
        values: list[float] = []
        for _, seen in self._seen:
            if seen.buffer == op.buffer and seen.time <= op.posted:
                values = seen.values
        return tuple(map(self._content, values[op.offset : op.offset + op.count]))

    def place(self, op: Operation) -> int | None:
        """Return the cell where an end of a message lies."""
        above = 0
        for region in self.regions:
            inside = region.offset <= op.offset < region.offset + region.count
            if region.buffer == op.buffer and inside:
                return above + op.offset - region.offset
            above += region.count
        return None


def _regions(snapshots: Sequence[Held | Seen]) -> Iterator[_Region]:
    """Yield the arguments and the result, as far as there is room; each memory once."""
    shown: set[tuple[int, int]] = set()
    room = MOST_CELLS
    for held in snapshots:
        if isinstance(held, Held) and (held.buffer, held.offset) not in shown and room:
            count = min(held.count, room)
            shown.add((held.buffer, held.offset))
            room -= count
            yield _Region(held.buffer, held.offset, count, held.role)


def _arrows(trace: Trace, number: int, columns: Sequence[_Column]) -> Iterator[Arrow]:
    for op in trace.sends():
        if op.partner is None or trace.start(op) != number:
            continue
        yield Arrow(
            op.rank,
            op.partner.rank,
            _joined(columns[op.rank].sent(op)) or Content("token" if not op.count else "data"),
            f"{op.count} × {op.dtype} ({op.nbytes} bytes)",
            str(op.site),
            columns[op.rank].place(op),
            columns[op.partner.rank].place(op.partner),
            op.count,
        )


def _joined(contents: Sequence[Content]) -> Content | None:
    """Return several cells as one, such as the contents of a message."""
    if not contents:
        return None
    text = " ".join(c.text or "·" for c in contents[:3]) + (" …" if len(contents) > 3 else "")
    owners = sorted({owner for content in contents for owner in content.owners})
    return Content(text, tuple(owners))


def _tag_content(value: float) -> Content:
    tag: Tag | None = tag_of(value)
    if tag is not None:
        return Content(str(tag), tag.owners)
    # a buffer that has not been written to holds arbitrary numbers
    return Content()


def _number_content(value: float) -> Content:
    whole = math.isfinite(value) and value == int(value)
    return Content(show(int(value) if whole else value))


# The rounds as a still picture, side by side. -------------------------------------

_WIDTH, _HEIGHT, _GAP = 0.62, 0.24, 0.42
_MARGIN = 0.5

#: Largest height of a picture, in inches; beyond it rounds before the end are left out.
_TALLEST = 24.0

#: Width of a picture, in inches, as wide as a notebook's column.
_PAGE = 10.0

#: Pixels per inch.
_DPI = 80


def strip(film: FrameSequence) -> bytes:
    """Return the rounds as a PNG; each panel shows what ranks hold and what they send."""
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
    """Draw a message; on a ring of ranks up to ``last`` it may go around the back."""
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


# The rounds as HTML to step through. ----------------------------------------------


@cache
def _asset(name: str) -> str:
    return resources.files("grader.report").joinpath(name).read_text(encoding="utf-8")


def player(film: FrameSequence) -> str:
    """Return the rounds as a piece of HTML."""
    data = html.escape(json.dumps(_data(film), separators=(",", ":"), ensure_ascii=False))
    return (
        f"<style>{_asset('player.css')}</style>\n"
        # JupyterLab's own shortcuts would capture the arrow keys
        f'<div class="gather-round-replay" data-lm-suppress-shortcuts="true" data-replay="{data}">'
        f"<pre>{html.escape(film.table())}</pre></div>\n"
        f"<script>{_asset('player.js')}</script>"
    )


def page(film: FrameSequence) -> str:
    """Return the rounds as a whole page."""
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
    """Return what the script reads; contents are numbered, since few are different."""
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
