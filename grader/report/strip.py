"""The rounds of a run as still pictures: all of them, or where an answer goes wrong.

A message that passes over other ranks has a lane of its own, so that one sees who sends to whom.
Where a run hangs, a box below every rank says what it does, and a dashed wire leads to those that
it waits for; see :class:`grader.report.looks.Standing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from grader.report.divergence import CellDifference, cells_that_differ, compared
from grader.report.elements import Markup, element, escape, join
from grader.report.looks import STANDING_DARK, Standing, dark_style, themed_image
from grader.report.rounds import Arrow, Content, Frame, FrameSequence

__all__ = ["Wire", "still", "strip", "verdict_strip", "wires"]


# Lanes. ---------------------------------------------------------------------------


_Name = TypeVar("_Name")


def _assign_lanes(spans: Mapping[_Name, tuple[float, float]]) -> dict[_Name, int]:
    """Return a lane for each span, short ones first; those that overlap get different ones."""
    taken: list[list[tuple[float, float]]] = []
    found = {}
    for name, (low, high) in sorted(spans.items(), key=lambda of: of[1][1] - of[1][0]):
        free = (
            lane
            for lane, others in enumerate(taken)
            if all(end <= low or high <= start for start, end in others)
        )
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        found[name] = lane
    return found


def _lanes(film: FrameSequence, frame: Frame) -> dict[int, int]:
    """Return lanes for the messages that pass over other ranks, by their place in the frame."""
    return _assign_lanes(
        {
            i: (min(a.source, a.destination), max(a.source, a.destination))
            for i, a in enumerate(frame.arrows)
            if abs(a.source - a.destination) > 1 and not _goes_around(film, a)
        }
    )


def _goes_around(film: FrameSequence, arrow: Arrow) -> bool:
    """Return whether a message goes around the back of a ring, from one end to the other."""
    last = film.ranks - 1
    return film.ring and last > 1 and abs(arrow.destination - arrow.source) == last


#: Largest number of wires that are drawn; of more, those of the cycle alone.
_MOST_WIRES = 24


@dataclass(frozen=True)
class Wire:
    """A wire from a rank that waits to one that it waits for, below their columns.

    Attributes:
        source, destination: ranks.
        in_cycle: whether it is part of the cycle.
        lane: how far below it runs; ``None`` between neighbours.
        leaves: where it begins in the width of the source's box, from 0 to 1; it ends in the middle
            of the other one.
        joins: whether it ends where its lane has another one that leads there.
    """

    source: int
    destination: int
    in_cycle: bool
    lane: int | None
    leaves: float
    joins: bool


def wires(film: FrameSequence) -> tuple[Wire, ...]:
    """Return who waits for whom where a run hangs, those of the cycle last."""
    ring = [*zip(film.cycle, [*film.cycle[1:], *film.cycle[:1]], strict=True)]
    pairs = [
        (rank, peer)
        for rank, halt in film.halts.items()
        for peer in halt.peers
        if peer != rank and peer < film.ranks
    ]
    if len(pairs) > _MOST_WIRES:
        pairs = [pair for pair in pairs if pair in ring]
    long = [pair for pair in pairs if abs(pair[0] - pair[1]) > 1]
    # all that lead to one rank share a lane, except for the cycle's
    groups: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for pair in long:
        groups.setdefault((pair[1], pair in ring), []).append(pair)
    lanes = _assign_lanes(
        {key: (min(map(min, of)), max(map(max, of))) for key, of in groups.items()}
    )
    found = []
    for rank, peer in pairs:
        right = peer > rank
        same = [to for start, to in long if start == rank and (to > rank) == right]
        share = (same.index(peer) + 1) / (len(same) + 1) if peer in same else 0.0
        key = peer, (rank, peer) in ring
        others = [start for start, _ in groups[key]] if (rank, peer) in long else [rank]
        # on either side of the goal the farthest one has the whole way
        joins = rank != (min(others) if right else max(others))
        lane = lanes[key] if (rank, peer) in long else None
        found.append(Wire(rank, peer, key[1], lane, (share + right) / 2, joins))
    return tuple(sorted(found, key=lambda wire: wire.in_cycle))


# All rounds side by side. ---------------------------------------------------------

#: Pixels: of a cell, between ranks, and around the picture.
_WIDTH, _HEIGHT, _GAP, _MARGIN = 60, 22, 32, 12

#: Pixels above and below the cells of a round, of a lane, and of the boxes where a run hangs.
_ABOVE, _BELOW, _LANE, _HALT = 38, 18, 9, 34

#: Largest height of a picture; beyond it rounds before the end are left out.
_TALLEST = 2400

#: Width of a picture, as wide as a notebook's column.
_PAGE = 850

#: Share of its size below which a picture does not shrink, so that its words can be read.
_SMALLEST = 0.75

#: Colours of the ranks' data, light enough for dark text; those of the player's style sheet.
_FILLS = (
    "#a6cfe6", "#f7d9a6", "#a6dac8", "#ecd0de", "#c4e4f7", "#f0c3a6", "#dbdbb8", "#cccccc",
)  # fmt: skip

#: What takes their place on a dark page.
_DARK_FILLS = (
    "#0b4a73", "#6b4700", "#00563f", "#6e3a56", "#28627f", "#7a3600", "#55551c", "#4a4a4a",
)  # fmt: skip

_INK, _FAINT, _WRONG = "#222222", "#666666", "#b71c1c"

_COLOURS = {
    **{"white": "#111111", _INK: "#eeeeee", _FAINT: "#a8a8a8", _WRONG: "#ff8f8f"},
    **dict(zip(_FILLS, _DARK_FILLS, strict=True)),
}
_DARK = dark_style(_COLOURS)
_DARK_WITH_STANDINGS = dark_style({**_COLOURS, **STANDING_DARK})


def strip(film: FrameSequence) -> str:
    """Return the rounds as SVG; each panel shows what ranks hold and what they send.

    It is written by hand, so that the same run gives the same bytes on every machine, and has a
    ground of its own, white or dark as the page is.
    """
    rows, below, contents = _rows(film), wires(film), dict[Content, int]()
    lanes = [_lanes(film, frame) for frame in film.frames]
    numbers, across = _panels_shown(film)
    wide = _panel_width(film)
    drawn, y = [], _MARGIN
    for start in range(0, len(numbers), across):
        line = numbers[start : start + across]
        # room for messages that pass over ranks, where there are some
        most = max((1 + lane for number in line for lane in lanes[number].values()), default=0)
        top = _ABOVE + _LANE * most
        for i, number in enumerate(line):
            ends = number == film.rounds
            name = f"round {number + 1} of {film.rounds}"
            if ends:
                name = "where it hangs" if film.stuck else "the end"
            panel = "".join(_panel(film, film.frames[number], lanes[number], top, contents))
            if ends and film.halts:
                panel += "".join(_hung_ranks(film, below, top + rows * _HEIGHT + 5))
            drawn.append(
                f"<g transform='translate({_MARGIN + i * wide} {y})'>"
                f"<text x='{wide / 2:g}' y='12' font-weight='bold'>{name}</text>{panel}</g>"
            )
        y += top + _panel_height(film, ends=film.rounds in line)
    style = _DARK_WITH_STANDINGS if film.halts else _DARK
    cells = "".join(f"<g id='c{i}'>{_cell(of, 0, 0)}</g>" for of, i in contents.items())
    opening = _opening(_strip_width(film), y, style)
    return "".join([opening, f"<defs>{cells}</defs>", *drawn, "</svg>"])


def _rows(film: FrameSequence) -> int:
    return max(1 if film.rounds else 0, sum(count for _, count in film.headings))


def _panel_width(film: FrameSequence) -> int:
    return film.ranks * (_WIDTH + _GAP) + _GAP


def _strip_width(film: FrameSequence) -> int:
    return _panels_shown(film)[1] * _panel_width(film) + 2 * _MARGIN


def _panel_height(film: FrameSequence, ends: bool = True) -> int:
    """Return the height of a round, or of the end, below the names of its ranks."""
    lanes = max((2 + of.lane for of in wires(film) if of.lane is not None), default=0)
    halted = _HALT + (_LANE + 2) * lanes if film.halts and ends else 0
    return _rows(film) * _HEIGHT + _BELOW + halted


def _panels_shown(film: FrameSequence) -> tuple[list[int], int]:
    """Return the numbers of the rounds that are drawn, and how many stand side by side."""
    across = max(1, min(len(film.frames), _PAGE // _panel_width(film)))
    room = max(2, across * (_TALLEST // (_panel_height(film) + _ABOVE)))
    numbers = list(range(len(film.frames)))
    return ([*numbers[: room - 1], numbers[-1]] if len(numbers) > room else numbers), across


def _opening(width: float, height: float, style: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:g}' height='{height:g}'"
        f" viewBox='0 0 {width:g} {height:g}' font-family='system-ui, sans-serif' font-size='11'"
        f" text-anchor='middle' fill='{_INK}'>{style}"
        f"<rect width='{width:g}' height='{height:g}' fill='white'/>"
    )


def still(*films: FrameSequence) -> Markup:
    """Return the rounds as ``img`` elements that are folded away, with the rounds as their text."""
    pictures = [
        themed_image(
            strip(film),
            "Every round as a picture. " + film.table().replace("\n", "; "),
            least=min(_SMALLEST * _strip_width(film), _PAGE),
        )
        for film in films
    ]
    if len(films) > 1:
        pictures = [
            Markup(f"{element('div', film.title)}\n{picture}")
            for film, picture in zip(films, pictures, strict=True)
        ]
    shown = [len(_panels_shown(film)[0]) for film in films]
    name = "All rounds in one picture"
    if not any(film.rounds for film in films):
        name = "The same as a picture"
    elif any(len(film.frames) > count for film, count in zip(films, shown, strict=True)):
        name = f"The first {min(shown) - 1} rounds and the end in one picture"
    return element("details", element("summary", name), "\n", join(pictures, "\n"), "\n")


def _left_of(rank: int) -> int:
    """Return the left edge of a rank's column."""
    return _GAP + rank * (_WIDTH + _GAP)


def _panel(
    film: FrameSequence,
    frame: Frame,
    lanes: Mapping[int, int],
    top: int,
    contents: dict[Content, int],
) -> Iterator[str]:
    """Yield the cells of a round and its messages; contents are drawn once, and numbered here."""
    for rank, column in enumerate(frame.cells):
        x = _left_of(rank)
        yield (f"<text x='{x + _WIDTH / 2:g}' y='{top - 6}' fill='{_FAINT}'>rank {rank}</text>")
        for row, cell in enumerate(column):
            if cell is not None:
                number = contents.setdefault(cell, len(contents))
                yield f"<use href='#c{number}' x='{x}' y='{top + row * _HEIGHT}'/>"
    for i, arrow in enumerate(frame.arrows):
        yield _arrow(arrow, film, lanes.get(i), top)


def _hung_ranks(film: FrameSequence, below: Iterable[Wire], y: int) -> Iterator[str]:
    """Yield a box for every rank where a run hangs, and the wires between them."""
    for rank, halt in film.halts.items():
        (line, _), (ground, _) = halt.standing.line, halt.standing.ground
        yield (
            f"<rect x='{_left_of(rank)}' y='{y}' width='{_WIDTH}' height='30' rx='4'"
            f" fill='{ground}' stroke='{line}' stroke-width='2'/>"
        )
        for i, text in enumerate(halt.label):
            yield f"<text x='{_left_of(rank) + _WIDTH / 2:g}' y='{y + 13 + 12 * i}'>{text}</text>"
    pairs = {(wire.source, wire.destination) for wire in below}
    for wire in below:
        look = Standing.CYCLE if wire.in_cycle else Standing.WAITS
        colour, forth = look.line[0], wire.destination > wire.source
        ahead = 1 if forth else -1
        if wire.lane is None:
            x1 = _left_of(wire.source) + (_WIDTH if forth else 0)
            x2 = _left_of(wire.destination) + (0 if forth else _WIDTH)
            at = y + 15 - (6 * ahead if (wire.destination, wire.source) in pairs else 0)
            way = f"M{x1} {at}H{x2 - 8 * ahead}"
            head = f"M{x2} {at}l{-8 * ahead} -4v8z"
        else:
            x1 = round(_left_of(wire.source) + _WIDTH * wire.leaves)
            x2, low = (
                _left_of(wire.destination) + _WIDTH // 2,
                y + 30 + (_LANE + 2) * (wire.lane + 1),
            )
            way = f"M{x1} {y + 31}V{low}" + ("" if wire.joins else f"H{x2}V{y + 39}")
            head = "" if wire.joins else f"M{x2} {y + 31}l-4 8h8z"
        yield (
            f"<path d='{way}' fill='none' stroke='{colour}' stroke-width='2'"
            f" stroke-dasharray='5 3'/><path d='{head}' fill='{colour}'/>"
        )


def _cell(cell: Content, x: float, y: float, width: int = _WIDTH) -> str:
    part = width / max(len(cell.owners), 1)
    fills = "".join(
        f"<rect x='{x + i * part:g}' y='{y}' width='{part:g}' height='{_HEIGHT}'"
        f" fill='{_FILLS[owner % len(_FILLS)]}'/>"
        for i, owner in enumerate(cell.owners)
    )
    size = min(11, 1.45 * (width - 4) / max(len(cell.text), 1))
    return (
        f"{fills}<rect x='{x}' y='{y}' width='{width}' height='{_HEIGHT}' fill='none'"
        f" stroke='{_INK if cell.text else _FAINT}'{'' if cell.text else _EMPTY}/>"
        f"<text x='{x + width / 2:g}' y='{y + 15}' font-size='{size:.3g}'>"
        f"{escape(cell.text)}</text>"
    )


_EMPTY = " stroke-dasharray='3 3'"


def _arrow(arrow: Arrow, film: FrameSequence, lane: int | None, top: int) -> str:
    """Draw a message from one rank's column to another's.

    A message between the first and the last rank of a ring leaves on the outer side of one column
    and enters on the outer side of the other, so that it crosses no rank between them.
    """
    leaves = arrow.leaves if arrow.leaves is not None else arrow.enters
    enters = arrow.enters if arrow.enters is not None else arrow.leaves
    y1, y2 = (top + ((row or 0) + 0.5) * _HEIGHT for row in (leaves, enters))
    forth = arrow.destination > arrow.source
    if _goes_around(film, arrow):
        forth = not forth
        ahead = _GAP - 6 if forth else 6 - _GAP
        out = _column_edge(arrow.source, forth)
        into = _column_edge(arrow.destination, not forth)
        return _line(out, y1, out + ahead, y1) + _line(into - ahead, y2, into, y2)
    # there and back between two ranks, a little apart
    aside = 4 if forth else -4
    x1, x2 = _column_edge(arrow.source, forth), _column_edge(arrow.destination, not forth)
    high = None if lane is None else top - 20.0 - _LANE * lane
    return _line(x1, y1 - aside, x2, y2 - aside, high)


def _column_edge(rank: int, right: bool) -> int:
    """Return the left or right edge of a rank's column."""
    return _left_of(rank) + (_WIDTH if right else 0)


def _line(x1: float, y1: float, x2: float, y2: float, high: float | None = None) -> str:
    """Draw an arrow with a level head; it runs above the ranks if ``high`` gives a height."""
    ahead = math.copysign(1, x2 - x1)
    base = x2 - 8 * ahead
    if high is None:
        middle = (x1 + base) / 2
        way = f"C{middle:g} {y1:g} {middle:g} {y2:g} {base:g} {y2:g}"
    else:
        up, down = x1 + 9 * ahead, base - 6 * ahead
        way = f"H{up:g}V{high:g}H{down:g}V{y2:g}H{base:g}"
    return (
        f"<path d='M{x1:g} {y1:g} {way}' fill='none' stroke='{_INK}' stroke-width='1.3'/>"
        f"<path d='M{x2:g} {y2:g} L{base:g} {y2 - 4:g} L{base:g} {y2 + 4:g} z'"
        f" fill='{_INK}'/>"
    )


# Where an answer goes wrong. ------------------------------------------------------

#: Largest numbers of ranks and of cells of each that are drawn.
_MOST_SHOWN, _MOST_ROWS = 4, 4

#: Pixels: between ranks, and of a message's lane with its words.
_BETWEEN, _HIGHWAY = 44, 22


def verdict_strip(film: FrameSequence, reference: FrameSequence) -> str:
    """Return where an answer goes wrong as an ``img`` element; empty if it is right.

    It shows the round after which a cell is wrong, framed red with the right value beside it; the
    end, if the answer takes another way altogether; or where it hangs.

    Args:
        film: the rounds of the answer.
        reference: those of a right answer on the same data.
    """
    difference = compared(film, reference)
    if difference is None or not difference.is_wrong:
        return ""
    if film.stuck:
        last = replace(film, frames=film.frames[-1:])
        least = min(_SMALLEST * _strip_width(last), _PAGE)
        return themed_image(strip(last), difference.caption, least=least)
    step, cells, sent = film.rounds, cells_that_differ(film, reference), {}
    if difference.own_arrows == difference.reference_arrows:
        step = difference.step
        cells = difference.cells or cells_that_differ(film, reference, step)
        sent = {
            (a.source, a.destination): a.content.text for a in reference.frames[step - 1].arrows
        }
    picture, width = _picture_of_difference(film, step, cells, sent)
    return themed_image(picture, difference.caption, least=_SMALLEST * width)


def _picture_of_difference(
    film: FrameSequence,
    step: int,
    wrong: Sequence[CellDifference],
    sent: Mapping[tuple[int, int], str],
) -> tuple[str, int]:
    """Return what some ranks hold after a round and what it has sent, with what is wrong in it.

    It is an SVG, and its width.

    Args:
        film: the rounds of the answer.
        step: the number of the round.
        wrong: cells.
        sent: what the messages of the round should have carried, by source and destination.
    """
    cells = film.frames[step].cells
    arrows = film.frames[step - 1].arrows if step else ()
    odd = {
        (a.source, a.destination)
        for a in arrows
        if sent.get((a.source, a.destination), a.content.text) != a.content.text
    }
    ranks = _ranks_shown([of.rank for of in wrong], arrows, odd)
    names = _rows_shown(film, [of for of in wrong if of.rank in ranks])
    found = {(of.rank, of.name): of for of in wrong}
    arrows = tuple(a for a in arrows if {a.source, a.destination} <= {*ranks})
    pitch = _WIDTH + _BETWEEN + (_WIDTH + 6 if wrong else 30)
    left = {rank: _MARGIN + 20 + i * pitch for i, rank in enumerate(ranks)}
    top = 48 + _HIGHWAY * len(arrows)
    width, height = _MARGIN + 20 + len(ranks) * pitch, top + len(names) * _HEIGHT + _MARGIN
    name = f"after round {step} of {film.rounds}" if step < film.rounds else "at the end"
    parts = [
        _opening(width, height, _DARK),
        f"<text x='{_MARGIN}' y='16' font-weight='bold' text-anchor='start'>{name}</text>",
    ]
    for rank, x in left.items():
        parts.append(
            f"<text x='{x + _WIDTH / 2:g}' y='{top - 6}' font-weight='bold'>rank {rank}</text>"
        )
        if any(of.rank == rank for of in wrong):
            ghost = x + 1.5 * _WIDTH + 6
            parts.append(f"<text x='{ghost:g}' y='{top - 6}' fill='{_FAINT}'>should be</text>")
        for i, (place, row) in enumerate(names.items()):
            y, cell = top + i * _HEIGHT, cells[rank][row] if row is not None else None
            if (rank, place) in found:
                parts += _corrected_cell(cell or Content(), found[rank, place].wanted, x, y)
            elif cell is not None:
                parts.append(_cell(cell, x, y))
    for lane, arrow in enumerate(arrows):
        pair = arrow.source, arrow.destination
        colour, ahead = _WRONG if pair in odd else _INK, 1 if pair[1] > pair[0] else -1
        x1, x2 = (
            left[of] + _WIDTH / 2 + by
            for of, by in zip(pair, (14 * ahead, -4 * ahead), strict=True)
        )
        high, low = 40 + _HIGHWAY * lane, top - 20
        words = f"{arrow.content.text}{f', {arrow.site}' if arrow.site else ''}"
        if pair in odd:
            words += f", should be {sent[pair]}"
        parts.append(
            f"<path d='M{x1:g} {low}V{high}H{x2:g}V{low - 7}' fill='none' stroke='{colour}'"
            f" stroke-width='1.5'/><path d='M{x2:g} {low}l-4 -8h8z' fill='{colour}'/>"
            f"<text x='{(x1 + x2) / 2:g}' y='{high - 4}' fill='{colour}'>{escape(words)}"
            "</text>"
        )
    return "".join([*parts, "</svg>"]), width


def _ranks_shown(
    wrong: Iterable[int], arrows: Sequence[Arrow], odd: Iterable[tuple[int, int]]
) -> list[int]:
    """Return the ranks that matter most, in order: wrong ones, then those that they talk to."""
    found = dict.fromkeys([*wrong, *(rank for pair in sorted(odd) for rank in pair)])
    first = [*found][:2]
    found |= dict.fromkeys(a.source for a in arrows if a.destination in first)
    found |= dict.fromkeys(a.destination for a in arrows if a.source in first)
    return sorted([*found][:_MOST_SHOWN])


def _rows_shown(
    film: FrameSequence, wrong: Iterable[CellDifference]
) -> dict[tuple[str, int], int | None]:
    """Return the names and rows of the cells that are drawn, those that are wrong first."""
    rows: dict[tuple[str, int], int | None] = dict.fromkeys(of.name for of in wrong)
    every = film.rows
    chosen = [*dict.fromkeys([*rows, *every])][:_MOST_ROWS]
    return {name: every.get(name) for name in sorted(chosen, key=lambda n: (n[0] == "result", n))}


def _corrected_cell(own: Content, wanted: Content, x: float, y: float) -> Iterator[str]:
    """Yield a wrong cell in a red frame, with a mark, and the right value as a ghost beside it."""
    yield _cell(own, x, y)
    yield f"<g opacity='.65'>{_cell(wanted, x + _WIDTH + 6, y)}</g>"
    yield (
        f"<rect x='{x}' y='{y}' width='{_WIDTH}' height='{_HEIGHT}' fill='none'"
        f" stroke='{_WRONG}' stroke-width='2.5'/>"
        f"<text x='{x - 8}' y='{y + 15}' fill='{_WRONG}' font-weight='bold'>✗</text>"
    )
