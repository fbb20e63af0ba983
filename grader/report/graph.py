"""The wait-for graph of a deadlock as a picture.

It is an ``img`` element with a ground of its own, white or dark as the page is (see
:mod:`grader.report.looks`); a page's style and ids do not affect what is in it.  The SVG is written
by hand, so that the same deadlock gives the same bytes on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.exercise.verdict import listed
from grader.report.elements import Markup, escape
from grader.report.looks import STANDING_DARK, Standing, dark_style, themed_image
from headcount.core.verdict import Wait
from headcount.report import visible

__all__ = ["Edge", "Layout", "Point", "Rect", "WaitForGraph", "graph_of", "laid_out"]


# The layout of a small directed graph: boxes, arrows between them, words on the arrows.
#
# Boxes are placed on an ellipse, and a box that all arrows point to in its centre.  The
# ellipse grows until boxes are apart, no arrow touches a box that it passes, and every
# word has a free place beside its arrow.  Nothing is random: the same graph always looks
# the same.

Point = tuple[float, float]
Edge = tuple[int, int]

#: Pixels between boxes, between an arrow and its two boxes, between an arrow and a box
#: that it passes, and between the two arrows of ranks that point at each other.
_APART, _TIP, _CLEAR, _PAIR = 34.0, 3.0, 8.0, 14.0

#: Factor by which the ellipse grows, and how often it may grow to make room for words.
_GROWTH, _PATIENCE = 1.08, 30

#: Where along an arrow a word may be placed, best first.
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7)


@dataclass(frozen=True)
class Rect:
    """A rectangle, given by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Rect, gap: float = 0.0) -> bool:
        """Return whether the other rectangle is closer than ``gap``, across and down."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2 + gap
            and abs(self.y - other.y) < (self.height + other.height) / 2 + gap
        )

    def meets_line(self, start: Point, end: Point, gap: float = 0.0) -> bool:
        """Return whether a straight line comes closer than ``gap``, across and down."""
        # the part of the line, from 0 to 1, that lies between the borders
        low, high = 0.0, 1.0
        for a, b, middle, size in (
            (start[0], end[0], self.x, self.width),
            (start[1], end[1], self.y, self.height),
        ):
            half, step = size / 2 + gap, b - a
            if abs(step) < 1e-9:
                if abs(a - middle) >= half:
                    return False
                continue
            one, other = sorted(((middle - half - a) / step, (middle + half - a) / step))
            low, high = max(low, one), min(high, other)
        return low < high


@dataclass(frozen=True)
class Layout:
    """The finished places, with the upper left corner of the whole at 0, 0.

    Attributes:
        boxes: of every node.
        arrows: of every edge, from its tail to its tip.
        words: of every edge that has a word.
    """

    boxes: dict[int, Rect]
    arrows: dict[Edge, tuple[Point, Point]]
    words: dict[Edge, Rect]
    width: float
    height: float


def laid_out(
    nodes: Sequence[int],
    edges: Sequence[Edge],
    box: tuple[float, float],
    words: Mapping[Edge, tuple[float, float]],
) -> Layout:
    """Return places for the parts of a graph.

    Args:
        nodes: in their order around the ellipse, from the top, clockwise.
        edges: pairs of two different nodes.
        box: width and height of every node's box.
        words: width and height of the words on edges.
    """
    goals = {goal for _, goal in edges}
    middle = goals if len(goals) == 1 and len(nodes) > 3 else set()
    around = [node for node in nodes if node not in middle]
    across, down, tries = box[0] * 0.6, box[1] * 0.8, 0
    while True:
        boxes = {node: Rect(*at, *box) for node, at in _on_ellipse(around, across, down)}
        boxes |= {node: Rect(0.0, 0.0, *box) for node in middle}
        if _is_clear(boxes, edges):
            arrows = {edge: _arrow_between(boxes, edge, edge[::-1] in edges) for edge in edges}
            placed = _word_places(boxes, arrows, words, tries < _PATIENCE)
            if placed is not None:
                return _from_corner(boxes, arrows, placed)
            tries += 1
        across, down = across * _GROWTH, down * _GROWTH


def _on_ellipse(nodes: Sequence[int], across: float, down: float) -> Iterator[tuple[int, Point]]:
    for i, node in enumerate(nodes):
        if len(nodes) == 2:
            yield node, (across * (2 * i - 1), 0.0)  # side by side
        else:
            angle = math.tau * i / len(nodes)
            # rounded, since mathematical libraries differ in the last digit
            right, up = round(math.sin(angle), 6), round(math.cos(angle), 6)
            yield node, (across * right, -down * up)


def _is_clear(boxes: Mapping[int, Rect], edges: Sequence[Edge]) -> bool:
    """Return whether boxes are apart, and every arrow keeps away from boxes that it passes."""
    places = list(boxes.values())
    if any(a.meets(b, _APART) for i, a in enumerate(places) for b in places[:i]):
        return False
    return not any(
        box.meets_line((boxes[a].x, boxes[a].y), (boxes[b].x, boxes[b].y), _CLEAR)
        for a, b in edges
        for node, box in boxes.items()
        if node not in (a, b)
    )


def _arrow_between(boxes: Mapping[int, Rect], edge: Edge, is_pair: bool) -> tuple[Point, Point]:
    """Return where an arrow leaves one box and reaches the other; one of a pair keeps right."""
    a, b = boxes[edge[0]], boxes[edge[1]]
    nx, ny = _unit_to_the_right(a, b)
    aside = _PAIR / 2 if is_pair else 0.0
    start = (a.x + nx * aside, a.y + ny * aside)
    end = (b.x + nx * aside, b.y + ny * aside)
    return _point_outside(a, start, end), _point_outside(b, end, start)


def _unit_to_the_right(a: Rect, b: Rect) -> Point:
    """Return the unit vector that points to the right of the way from one box to another."""
    dx, dy = b.x - a.x, b.y - a.y
    length = math.hypot(dx, dy)
    return -dy / length, dx / length


def _point_outside(box: Rect, inside: Point, outside: Point) -> Point:
    """Return where a line from inside a box has just left it."""
    ways = []
    for i, (middle, size) in enumerate(((box.x, box.width), (box.y, box.height))):
        step = outside[i] - inside[i]
        if abs(step) > 1e-9:
            border = middle + math.copysign(size / 2 + _TIP, step)
            ways.append((border - inside[i]) / step)
    x, y = (inside[i] + (outside[i] - inside[i]) * min(ways) for i in (0, 1))
    return x, y


def _word_places(
    boxes: Mapping[int, Rect],
    arrows: Mapping[Edge, tuple[Point, Point]],
    words: Mapping[Edge, tuple[float, float]],
    strict: bool,
) -> dict[Edge, Rect] | None:
    """Return a place for every word; ``None`` if ``strict`` and one has no free place."""
    placed: dict[Edge, Rect] = {}
    for edge, size in words.items():
        options = list(_places_beside(boxes, arrows, edge, size))
        taken = [*boxes.values(), *placed.values()]
        free = (
            place
            for place in options
            if not any(place.meets(other, 4) for other in taken)
            and not any(
                place.meets_line(*line, 1) for other, line in arrows.items() if other != edge
            )
        )
        found = next(free, None if strict else options[0])
        if found is None:
            return None
        placed[edge] = found
    return placed


def _places_beside(
    boxes: Mapping[int, Rect],
    arrows: Mapping[Edge, tuple[Point, Point]],
    edge: Edge,
    size: tuple[float, float],
) -> Iterator[Rect]:
    """Yield places for a word beside its arrow, outer first; of a pair, on its own side only."""
    (ax, ay), (bx, by) = arrows[edge]
    nx, ny = _unit_to_the_right(boxes[edge[0]], boxes[edge[1]])
    if edge[::-1] in arrows:
        sides = [1]
    else:
        # the centre of the ellipse is 0, 0 until everything has its place
        sides = [1, -1] if (ax + bx) * nx + (ay + by) * ny > 1e-6 else [-1, 1]
    away = 5 + abs(nx) * size[0] / 2 + abs(ny) * size[1] / 2
    # along a slanting arrow, so far that a corner of the word is nearest to the point
    shift = ny * max(-1, min(1, 2 * nx)) * size[0] / 2 - nx * max(-1, min(1, 2 * ny)) * size[1] / 2
    for side in sides:
        for along in _ALONG:
            x, y = ax + (bx - ax) * along, ay + (by - ay) * along
            x, y = x + ny * side * shift, y - nx * side * shift
            yield Rect(x + nx * side * away, y + ny * side * away, *size)


def _from_corner(
    boxes: Mapping[int, Rect],
    arrows: Mapping[Edge, tuple[Point, Point]],
    words: Mapping[Edge, Rect],
) -> Layout:
    """Return the same places, relative to the upper left corner of the whole."""
    every = [*boxes.values(), *words.values()]
    left, top = min(r.x - r.width / 2 for r in every), min(r.y - r.height / 2 for r in every)

    def moved(rect: Rect) -> Rect:
        return Rect(rect.x - left, rect.y - top, rect.width, rect.height)

    return Layout(
        {node: moved(box) for node, box in boxes.items()},
        {
            edge: ((ax - left, ay - top), (bx - left, by - top))
            for edge, ((ax, ay), (bx, by)) in arrows.items()
        },
        {edge: moved(word) for edge, word in words.items()},
        max(r.x + r.width / 2 for r in every) - left,
        max(r.y + r.height / 2 for r in every) - top,
    )


# The graph as a picture. ----------------------------------------------------------


#: Largest number of ranks drawn; of a larger deadlock only the cycle is drawn, if it fits.
MOST_RANKS = 12

#: Letters of a call and its line; first the call is cut to fit, then its place.
_LETTERS = 36

#: Letters of a call and its place that fit on one line of a box.
_SHORT = 22

#: Pixels: of a letter, generously since fonts differ; of a line of text; of the margin.
_LETTER, _LINE, _MARGIN = 7.0, 17.0, 14.0

#: Colours of words and of the frame; those of ranks are in :class:`grader.report.looks.Standing`.
_INK, _FAINT = "#222222", "#666666"

#: The colours for a dark page; what does not know styles keeps the light ones.
_DARK = dark_style({"white": "#111111", _INK: "#eeeeee", _FAINT: "#a8a8a8", **STANDING_DARK})


@dataclass(frozen=True)
class WaitForGraph:
    """The part of a wait-for graph that is drawn.

    Attributes:
        nodes: ranks, those of the cycle first and in its order.
        waits: the waits of ranks that are drawn.
        ring: the arrows of the cycle.
        over: by rank, how one that does not wait has ended.
        left_out: how many waiting ranks are not drawn.
    """

    nodes: list[int]
    waits: dict[int, Wait]
    ring: list[Edge]
    over: dict[int, str]
    left_out: int

    @property
    def edges(self) -> list[Edge]:
        """The arrows between ranks that are drawn."""
        return [
            (rank, peer)
            for rank, wait in self.waits.items()
            for peer in wait.peers
            if peer in self.nodes and peer != rank
        ]

    @property
    def image(self) -> Markup:
        """The graph as an ``img`` element."""
        return themed_image(_svg(self), self.words)

    @property
    def words(self) -> str:
        """What the picture shows, for readers who cannot see it."""
        parts = ["Who waits for whom."]
        for rank in sorted(self.waits):
            wait = self.waits[rank]
            peers, which = f"rank {wait.peers[0]}", ""
            if len(wait.peers) > 1:
                peers, which = (
                    f"ranks {listed(wait.peers)}",
                    "any of " if wait.any_of else "all of ",
                )
            parts.append(f"Rank {rank} waits for {which}{peers} ({_call(wait)}).")
        parts += [
            f"Rank {rank} {how}." for rank, how in sorted(self.over.items()) if rank in self.nodes
        ]
        if self.ring:
            cycle = [rank for rank, _ in self.ring]
            parts.append(f"The cycle: {' → '.join(map(str, [*cycle, cycle[0]]))}.")
        parts += [f"{self.left_out} more wait."] if self.left_out else []
        return " ".join(parts)


def graph_of(
    waits: Sequence[Wait],
    cycle: Sequence[int] = (),
    ended: Sequence[int] = (),
    killed: Sequence[int] = (),
) -> WaitForGraph | None:
    """Return all waiting ranks and their peers, or of too many those of the cycle alone.

    It is None if there is nothing to draw, or too much.
    """
    by_rank = {wait.rank: wait for wait in waits}
    over = dict.fromkeys(ended, Standing.ENDED.word) | dict.fromkeys(killed, "has been killed")
    every = {rank for wait in waits for rank in (wait.rank, *wait.peers)}
    for nodes in ([*cycle, *sorted(every - set(cycle))], list(cycle)):
        if 2 <= len(nodes) <= MOST_RANKS:
            drawn = {rank: by_rank[rank] for rank in nodes if rank in by_rank}
            ring = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
            return WaitForGraph(nodes, drawn, ring, over, len(by_rank) - len(drawn))
    return None


def _call(wait: Wait, separator: str = ", ") -> str:
    """Return a call and its line, as in ``send, line 8``."""
    site = _without_middle("" if wait.site is None else str(wait.site), _LETTERS)
    call = _without_middle(wait.call, max(8, _LETTERS - len(site)))
    return separator.join(part for part in (call, site) if part)


def _without_middle(text: str, letters: int) -> str:
    """Return a text without its middle if it is long, since the end of a place is its line."""
    text = " ".join(visible(text).split())
    return text if len(text) <= letters else f"{text[: letters // 2]}…{text[1 - letters // 2 :]}"


def _lines(graph: WaitForGraph, rank: int) -> list[str]:
    """Return the lines of a box.  The call is on the arrow instead if there is only one arrow."""
    wait = graph.waits.get(rank)
    if wait is None:
        return [f"rank {rank}", graph.over.get(rank, Standing.RUNS.word)]
    if len(wait.peers) == 1:
        return [f"rank {rank}", Standing.WAITS.word]
    needs = "any one" if wait.any_of else "all"
    call = [_call(wait)] if len(_call(wait)) <= _SHORT else _call(wait, "\n").split("\n")
    return [f"rank {rank}", *call, f"needs {needs} of {len(wait.peers)}"]


# Drawing. -------------------------------------------------------------------------


def _svg(graph: WaitForGraph) -> str:
    lines = {rank: _lines(graph, rank) for rank in graph.nodes}
    box = (
        max(64.0, _LETTER * max(len(line) for of in lines.values() for line in of) + 16),
        12 + _LINE * max(map(len, lines.values())),
    )
    names = {(w.rank, w.peers[0]): _call(w) for w in graph.waits.values() if len(w.peers) == 1}
    edges = graph.edges
    layout = laid_out(
        graph.nodes,
        edges,
        box,
        {edge: (_LETTER * len(name), _LINE) for edge, name in names.items() if edge in edges},
    )
    legend = list(_legend(graph))
    longest = max((len(text) for text, _ in legend), default=0)
    wide = max(layout.width, 42 + _LETTER * longest) + 2 * _MARGIN
    high = layout.height + 2 * _MARGIN + 20 * len(legend)
    indent = (wide - layout.width) / 2
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{wide:.0f}' height='{high:.0f}'"
        f" viewBox='0 0 {wide:.0f} {high:.0f}' font-family='system-ui, sans-serif'"
        f" font-size='12' text-anchor='middle' fill='{_INK}'>",
        _DARK,
        # a frame, since the page may be white as well
        f"<rect x='.5' y='.5' width='{wide - 1:.0f}' height='{high - 1:.0f}' rx='6'"
        f" fill='white' stroke='{_FAINT}'/>",
        f"<g transform='translate({indent:.1f} {_MARGIN:.1f})'>",
        # the cycle last, so that it is on top
        *(
            _arrow(graph, edge, *layout.arrows[edge])
            for edge in sorted(edges, key=lambda edge: edge in graph.ring)
        ),
        *(_box(graph, rank, place, lines[rank]) for rank, place in layout.boxes.items()),
        *(_name(graph, edge, place, names[edge]) for edge, place in layout.words.items()),
        "</g>",
    ]
    for i, (text, look) in enumerate(legend):
        y = layout.height + 2 * _MARGIN + 20 * i + 4
        parts.append(
            f"<path d='M{_MARGIN:.1f} {y:.1f}h32' {look}/>"
            f"<text x='{_MARGIN + 42:.1f}' y='{y + 4:.1f}' text-anchor='start'>{text}</text>"
        )
    return "".join([*parts, "</svg>"])


def _legend(graph: WaitForGraph) -> Iterator[tuple[str, str]]:
    """Yield what the kinds of lines mean, as far as they are drawn."""
    several = {wait.any_of for wait in graph.waits.values() if len(wait.peers) > 1}
    if graph.ring:
        yield "the cycle: each waits for the next", _stroke(Standing.CYCLE, False)
    if False in several:
        yield "it needs all that it points to (AND)", _stroke(Standing.WAITS, False)
    if True in several:
        yield "any one that it points to would do (OR)", _stroke(Standing.WAITS, True)


def _arrow(graph: WaitForGraph, edge: Edge, start: Point, end: Point) -> str:
    bold, wait = edge in graph.ring, graph.waits[edge[0]]
    standing = Standing.CYCLE if bold else Standing.WAITS
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    ux, uy = dx / length, dy / length
    size = 13.0 if bold else 10.0
    half = size * 0.45
    # the line ends inside its head, so that the tip stays sharp
    x, y = end[0] - ux * size, end[1] - uy * size
    return (
        f"<path d='M{start[0]:.1f} {start[1]:.1f}L{x:.1f} {y:.1f}'"
        f" {_stroke(standing, wait.any_of and len(wait.peers) > 1)}/>"
        f"<path d='M{end[0]:.1f} {end[1]:.1f}L{x - uy * half:.1f} {y + ux * half:.1f}"
        f"L{x + uy * half:.1f} {y - ux * half:.1f}z' fill='{standing.line[0]}'/>"
    )


def _box(graph: WaitForGraph, rank: int, place: Rect, lines: Sequence[str]) -> str:
    in_cycle = any(rank in edge for edge in graph.ring)
    standing = (
        Standing.CYCLE
        if in_cycle
        else Standing.WAITS
        if rank in graph.waits
        else Standing.ENDED
        if rank in graph.over
        else Standing.RUNS
    )
    look = (
        f"fill='{standing.ground[0]}' stroke='{standing.line[0]}'"
        f" stroke-width='{3 if in_cycle else 2}'"
    )
    # whoever is waited for and will never come is to be seen at once
    bold = len(lines) if standing is Standing.ENDED else 1
    first = place.y - _LINE * (len(lines) - 1) / 2 + 4
    texts = "".join(
        f"<text x='{place.x:.1f}' y='{first + _LINE * i:.1f}'"
        f"{_BOLD if i < bold else ''}>{escape(line)}</text>"
        for i, line in enumerate(lines)
    )
    return (
        f"<rect x='{place.x - place.width / 2:.1f}' y='{place.y - place.height / 2:.1f}'"
        f" width='{place.width:.1f}' height='{place.height:.1f}' rx='7' {look}/>{texts}"
    )


def _name(graph: WaitForGraph, edge: Edge, place: Rect, text: str) -> str:
    """Return a call and its line as SVG, readable where another arrow crosses it."""
    look = f" fill='{Standing.CYCLE.line[0]}'{_BOLD}" if edge in graph.ring else ""
    return (
        f"<text x='{place.x:.1f}' y='{place.y + 4:.1f}'{look} paint-order='stroke'"
        f" stroke='white' stroke-width='4'>{escape(text)}</text>"
    )


_BOLD = " font-weight='bold'"


def _stroke(standing: Standing, is_any: bool) -> str:
    """Return the SVG attributes of a wire: dashed, and dotted where any one of several would do."""
    width = 3.6 if standing is Standing.CYCLE else 2
    dashes = "2 4" if is_any else "7 4"
    return f"stroke='{standing.line[0]}' stroke-width='{width}' stroke-dasharray='{dashes}'"
