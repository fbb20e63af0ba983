"""Where the parts of a small directed graph go: boxes, arrows between them, words on the arrows.

The boxes stand on an ellipse, and one that all arrows point to in its middle.
It grows until the boxes are apart, no arrow touches a box that it passes, and
every word has a place beside its arrow where nothing else is.  There is no
chance in it: the same graph always looks the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Edge", "Layout", "Point", "Rect", "laid_out"]

Point = tuple[float, float]
Edge = tuple[int, int]

#: Pixels between boxes, between an arrow and its two boxes, around what an arrow
#: passes, and between the two arrows of a pair that points at each other.
_APART, _TIP, _CLEAR, _PAIR = 34.0, 3.0, 8.0, 14.0

#: How much the ellipse grows at a time, and how often for the sake of words alone.
_GROWTH, _PATIENCE = 1.08, 30

#: Where along an arrow a word may stand, best first.
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7)


@dataclass(frozen=True)
class Rect:
    """A rectangle, by its middle."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Rect, gap: float = 0.0) -> bool:
        """Whether the other is closer than ``gap``, across and down."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2 + gap
            and abs(self.y - other.y) < (self.height + other.height) / 2 + gap
        )

    def meets_line(self, start: Point, end: Point, gap: float = 0.0) -> bool:
        """Whether a straight line comes closer than ``gap``, across and down."""
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
    """The finished places, with the corner of the whole at 0, 0.

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
    """Places for a graph.

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
            arrows = {edge: _arrow(boxes, edge, edge[::-1] in edges) for edge in edges}
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
    """Whether boxes are apart, and every arrow keeps away from those that it passes."""
    places = list(boxes.values())
    if any(a.meets(b, _APART) for i, a in enumerate(places) for b in places[:i]):
        return False
    return not any(
        box.meets_line((boxes[a].x, boxes[a].y), (boxes[b].x, boxes[b].y), _CLEAR)
        for a, b in edges
        for node, box in boxes.items()
        if node not in (a, b)
    )


def _arrow(boxes: Mapping[int, Rect], edge: Edge, is_pair: bool) -> tuple[Point, Point]:
    """Where an arrow leaves one box and reaches the other; one of a pair keeps right."""
    a, b = boxes[edge[0]], boxes[edge[1]]
    nx, ny = _right(a, b)
    aside = _PAIR / 2 if is_pair else 0.0
    start = (a.x + nx * aside, a.y + ny * aside)
    end = (b.x + nx * aside, b.y + ny * aside)
    return _border(a, start, end), _border(b, end, start)


def _right(a: Rect, b: Rect) -> Point:
    """The direction to the right hand of somebody who goes from one to the other."""
    dx, dy = b.x - a.x, b.y - a.y
    length = math.hypot(dx, dy)
    return -dy / length, dx / length


def _border(box: Rect, inside: Point, outside: Point) -> Point:
    """Where a line from inside of a box has just left it."""
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
    """A place for every word; ``None`` if one has none, unless that must do."""
    placed: dict[Edge, Rect] = {}
    for edge, size in words.items():
        options = list(_beside(boxes, arrows, edge, size))
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


def _beside(
    boxes: Mapping[int, Rect],
    arrows: Mapping[Edge, tuple[Point, Point]],
    edge: Edge,
    size: tuple[float, float],
) -> Iterator[Rect]:
    """Places for a word beside its arrow: outside first; of a pair, on its own side only."""
    (ax, ay), (bx, by) = arrows[edge]
    nx, ny = _right(boxes[edge[0]], boxes[edge[1]])
    if edge[::-1] in arrows:
        sides = [1]
    else:
        # the middle of the whole is 0, 0 until everything has its place
        sides = [1, -1] if (ax + bx) * nx + (ay + by) * ny > 1e-6 else [-1, 1]
    away = 5 + abs(nx) * size[0] / 2 + abs(ny) * size[1] / 2
    # along a slanting arrow, so far that a corner of the word is next to the point
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
    """The same places, counted from the corner of the whole."""
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
