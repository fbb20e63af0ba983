"""The wait-for graph of a deadlock as a picture.

It is an image in an ``img`` element, with a white ground of its own: notebooks
that are not trusted strip vector graphics out of HTML, but keep images, and one
page's style and ids cannot reach into another's picture.  It is drawn as SVG by
hand, so that the same deadlock gives the same bytes on every machine.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from grader.reports.summary import listed, visible
from grader.verdict import Wait

__all__ = ["graph_image", "graph_svg", "graph_words"]

#: More ranks than this are not drawn; of a larger deadlock the cycle is, if it fits.
MOST_RANKS = 12

#: Letters of a label; a longer one is cut.
_LETTERS = 26

#: Vermilion, dark enough to read on white, for what is on the cycle.
_CYCLE, _INK, _FAINT = "#b34700", "#222222", "#666666"

_MARGIN = 16

Point = tuple[float, float]


def graph_image(
    waits: Sequence[Wait], cycle: Sequence[int] = (), ended: Sequence[int] = ()
) -> str:
    """The graph as an ``img`` element; empty if there is nothing to draw, or too much."""
    svg = graph_svg(waits, cycle, ended)
    if not svg:
        return ""
    # what is left as it is stays readable in a stored notebook
    source = quote(svg, safe=" ='/:;,()-.")
    words = html.escape(graph_words(waits, cycle, ended))
    return f'<img alt="{words}" style="max-width: 100%" src="data:image/svg+xml,{source}">'


def graph_words(waits: Sequence[Wait], cycle: Sequence[int] = (), ended: Sequence[int] = ()) -> str:
    """What the picture shows, for those who do not see it."""
    parts = ["Who waits for whom."]
    for wait in waits:
        peers = f"rank {wait.peers[0]}" if len(wait.peers) == 1 else f"ranks {listed(wait.peers)}"
        if len(wait.peers) > 1:
            peers = f"any of {peers}" if wait.any_of else f"all of {peers}"
        parts.append(f"Rank {wait.rank} waits for {peers} ({_call(wait)}).")
    parts += [f"Rank {rank} has returned." for rank in ended]
    if cycle:
        parts.append(f"The circle: {' → '.join(map(str, (*cycle, cycle[0])))}.")
    return visible(" ".join(parts))


def graph_svg(waits: Sequence[Wait], cycle: Sequence[int] = (), ended: Sequence[int] = ()) -> str:
    """The graph as SVG; empty if there is nothing to draw, or too much."""
    nodes = _nodes(waits, cycle)
    if not 2 <= len(nodes) <= MOST_RANKS:
        nodes, waits = list(cycle), [wait for wait in waits if wait.rank in cycle]
    if not 2 <= len(nodes) <= MOST_RANKS:
        return ""
    return _Picture(nodes, waits, cycle, ended).svg(graph_words(waits, cycle, ended))


def _nodes(waits: Iterable[Wait], cycle: Sequence[int]) -> list[int]:
    """Who is in the picture: the cycle in its own order, then the others."""
    every = {rank for wait in waits for rank in (wait.rank, *wait.peers)}
    return [*cycle, *sorted(every - set(cycle))]


def _call(wait: Wait) -> str:
    """ "send, line 8"."""
    return ", ".join(str(part) for part in (wait.call, wait.site) if part)


class _Picture:
    """Boxes on an ellipse, wide enough that no arrow touches a box that it passes."""

    def __init__(
        self,
        nodes: Sequence[int],
        waits: Sequence[Wait],
        cycle: Sequence[int],
        ended: Sequence[int],
    ) -> None:
        self.waits = {wait.rank: wait for wait in waits}
        self.edges = [(w.rank, peer) for w in waits for peer in w.peers if peer in nodes]
        self.cycle = set(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
        self.on_cycle = set(cycle)
        self.lines = {rank: self._lines(rank, ended) for rank in nodes}
        longest = max(len(line) for lines in self.lines.values() for line in lines)
        self.width = max(92.0, 7.2 * longest + 20)
        self.height = 14.0 + 17 * max(map(len, self.lines.values()))
        self.at = self._placed(nodes)

    def _lines(self, rank: int, ended: Sequence[int]) -> list[str]:
        """What stands in a box."""
        wait = self.waits.get(rank)
        if wait is None:
            return [f"rank {rank}", "has returned" if rank in ended else "does not wait"]
        call = visible(_call(wait))
        lines = [f"rank {rank}", call if len(call) <= _LETTERS else f"{call[: _LETTERS - 1]}…"]
        if len(wait.peers) > 1:
            lines.append(f"needs {'any' if wait.any_of else 'all'} of {len(wait.peers)}")
        return lines

    # Where things are. -------------------------------------------------------

    def _placed(self, nodes: Sequence[int]) -> dict[int, Point]:
        across, down = self.width * 0.75, self.height * 1.1
        while True:
            at = {}
            for i, rank in enumerate(nodes):
                # two ranks side by side; more of them from the top, clockwise
                angle = math.pi * (i + 1) if len(nodes) == 2 else math.tau * i / len(nodes)
                if len(nodes) == 2:
                    at[rank] = (1.5 * across * math.cos(angle), 0.0)
                else:
                    at[rank] = (across * math.sin(angle), -down * math.cos(angle))
            if self._is_clear(at):
                left, top = (min(p[k] for p in at.values()) for k in (0, 1))
                dx, dy = self.width / 2 + _MARGIN - left, self.height / 2 + _MARGIN - top
                return {rank: (x + dx, y + dy) for rank, (x, y) in at.items()}
            across, down = across * 1.08, down * 1.08

    def _is_clear(self, at: dict[int, Point]) -> bool:
        """Whether boxes are apart, and every arrow keeps away from those that it passes."""
        places = list(at.values())
        for i, (x, y) in enumerate(places):
            for u, v in places[:i]:
                if abs(x - u) < self.width + 44 and abs(y - v) < self.height + 34:
                    return False
        return not any(
            self._meets(at[a], at[b], at[other])
            for a, b in self.edges
            for other in at
            if other not in (a, b)
        )

    def _meets(self, start: Point, end: Point, box: Point) -> bool:
        """Whether a straight line comes close to the box around a point."""
        for i in range(1, 40):
            x, y = (start[k] + (end[k] - start[k]) * i / 40 for k in (0, 1))
            if abs(x - box[0]) < self.width / 2 + 8 and abs(y - box[1]) < self.height / 2 + 8:
                return True
        return False

    def _ends(self, start: Point, end: Point, aside: float) -> tuple[Point, Point]:
        """Where an arrow leaves one box and reaches the other, moved to its right."""
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = math.hypot(dx, dy)
        shift = (-dy / length * aside, dx / length * aside)
        ends = []
        for (x, y), sign in ((start, 1), (end, -1)):
            # how far it is from the shifted middle to the border of the box
            ways = [
                (half + 3 - math.copysign(1, step * sign) * off) / abs(step)
                for half, step, off in (
                    (self.width / 2, dx, shift[0]),
                    (self.height / 2, dy, shift[1]),
                )
                if abs(step) > 1e-9
            ]
            way = sign * min(ways)
            ends.append((x + shift[0] + dx * way, y + shift[1] + dy * way))
        return ends[0], ends[1]

    # Drawing. ----------------------------------------------------------------

    def svg(self, words: str) -> str:
        legend = list(self._legend())
        right = max(x for x, _ in self.at.values()) + self.width / 2 + _MARGIN
        bottom = max(y for _, y in self.at.values()) + self.height / 2 + _MARGIN
        wide = max(right, 64 + 7.0 * max(map(len, (text for text, _ in legend)), default=0))
        high = bottom + 20 * len(legend)
        parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{html.escape(words)}'"
            f" width='{wide:.0f}' height='{high:.0f}' viewBox='0 0 {wide:.0f} {high:.0f}'"
            " font-family='system-ui, sans-serif' font-size='12' text-anchor='middle'>",
            # a frame, since the ground around it may be white as well
            f"<rect width='100%' height='100%' rx='6' fill='white' stroke='{_FAINT}'/>",
            *(self._arrow(*edge) for edge in sorted(self.edges, key=lambda e: e in self.cycle)),
            *(self._box(rank) for rank in self.at),
        ]
        for i, (text, line) in enumerate(legend):
            y = bottom + 20 * i
            parts.append(
                f"<path d='M{_MARGIN} {y:.1f}h32' {line}/>"
                f"<text x='{_MARGIN + 42}' y='{y + 4:.1f}' fill='{_INK}' text-anchor='start'>"
                f"{text}</text>"
            )
        return "".join([*parts, "</svg>"])

    def _legend(self) -> Iterator[tuple[str, str]]:
        if self.cycle:
            yield "the circle: each waits for the next", _stroke(True, False)
        several = [wait for wait in self.waits.values() if len(wait.peers) > 1]
        if any(not wait.any_of for wait in several):
            yield "needs all that it points to (AND)", _stroke(False, False)
        if any(wait.any_of for wait in several):
            yield "needs any one that it points to (OR)", _stroke(False, True)

    def _arrow(self, rank: int, peer: int) -> str:
        bold = (rank, peer) in self.cycle
        both = (peer, rank) in self.edges
        start, end = self._ends(self.at[rank], self.at[peer], 9.0 if both else 0.0)
        wait = self.waits[rank]
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = math.hypot(dx, dy)
        ux, uy = dx / length, dy / length
        size = 13.0 if bold else 10.0
        # the line ends inside of its head, so that the point stays sharp
        x, y = end[0] - ux * size, end[1] - uy * size
        half = size * 0.45
        return (
            f"<path d='M{start[0]:.1f} {start[1]:.1f}L{x:.1f} {y:.1f}'"
            f" {_stroke(bold, wait.any_of and len(wait.peers) > 1)}/>"
            f"<path d='M{end[0]:.1f} {end[1]:.1f}L{x - uy * half:.1f} {y + ux * half:.1f}"
            f"L{x + uy * half:.1f} {y - ux * half:.1f}z' fill='{_CYCLE if bold else _INK}'/>"
        )

    def _box(self, rank: int) -> str:
        x, y = self.at[rank]
        stuck, bold = rank in self.waits, rank in self.on_cycle
        look = (
            f"fill='#fbeee6' stroke='{_CYCLE}' stroke-width='3'"
            if bold
            else f"fill='#f4f4f4' stroke='{_INK}' stroke-width='1.3'"
            if stuck
            else f"fill='white' stroke='{_FAINT}' stroke-dasharray='4 3'"
        )
        first = y - 17 * (len(self.lines[rank]) - 1) / 2 + 4
        texts = "".join(
            f"<text x='{x:.1f}' y='{first + 17 * i:.1f}' fill='{_INK}'"
            f"{' font-weight=' + repr('bold') if i == 0 else ''}>{html.escape(line)}</text>"
            for i, line in enumerate(self.lines[rank])
        )
        return (
            f"<rect x='{x - self.width / 2:.1f}' y='{y - self.height / 2:.1f}'"
            f" width='{self.width:.1f}' height='{self.height:.1f}' rx='7' {look}/>{texts}"
        )


def _stroke(bold: bool, dashed: bool) -> str:
    """How a line looks."""
    dash = " stroke-dasharray='6 5'" if dashed else ""
    return f"stroke='{_CYCLE if bold else _INK}' stroke-width='{3.6 if bold else 1.5}'{dash}"
