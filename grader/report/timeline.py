"""A run in time, as a picture; see :mod:`headcount.trace.lanes` for what it shows."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from PIL import Image

from grader.report.drawing import FAINT, INK, Colour, Sheet, colour_of, darkened, tint
from grader.report.looks import Look, Standing
from headcount.core.verdict import Diagnosis, Wait
from headcount.trace.lanes import CODE, Bar, Lane, Lanes, Line, Mark

__all__ = ["timeline_png", "timeline_svg", "unit_of"]

# The run as a picture. ------------------------------------------------------------

#: Inches: of the picture, of its margins, and of a lane.
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP, _BOTTOM = 10.0, 0.8, 1.35, 0.56, 0.45, 0.95

#: Width of a letter of a label, in inches.
_LETTER = 0.082

#: Smallest width of a bar, in inches, so that short ones are visible.
_THINNEST = 0.012

#: Largest numbers of bars and of messages that are drawn; more could not be told apart.
_MOST_BARS, _MOST_LINES = 1500, 400

#: Largest number of ranks that one waits for to which wires are drawn.
_MOST_PEERS = 3

#: The colour of each kind of bar, as an index of the palette; amber is for those that never end.
_COLOURS = {CODE: 7, "send": 2, "recv": 0, "collective": 3}

#: Pixels per inch.
_DPI = 110


def unit_of(nanoseconds: float) -> tuple[float, str]:
    """Return the unit in which a time is best read, in nanoseconds, and its name."""
    for size, name in ((1e9, "s"), (1e6, "ms")):
        if nanoseconds >= size:
            return size, name
    return 1e3, "µs"


def timeline_png(lanes: Lanes) -> bytes:
    """Return the run as a PNG on a white ground."""
    return Drawing(lanes).sheet.small_png(_DPI)


def timeline_svg(png: bytes) -> str:
    """Return a run's PNG as an SVG that shows it on a white ground, and on a dark page darkened."""
    width, height = Image.open(io.BytesIO(png)).size
    size = f"width='{width}' height='{height}'"
    dark, light = (
        f"href='data:image/png;base64,{base64.b64encode(picture).decode('ascii')}'"
        for picture in (darkened(png), png)
    )
    # the light one on top: what does not know styles shows that; elsewhere the other one is not
    # there at all, since it would show through where a corner is round
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} viewBox='0 0 {width} {height}'>"
        "<style>.dark{display:none}@media (prefers-color-scheme:dark)"
        "{.dark{display:inline}.light{display:none}}</style>"
        f"<image class='dark' {size} {dark}/><image class='light' {size} {light}/></svg>"
    )


class Drawing:
    """Time lines on a sheet.

    Args:
        lanes: what is drawn.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        failure = lanes.failure
        hung = failure is not None and failure.diagnosis is Diagnosis.DEADLOCK
        self.waits = {wait.rank: wait for wait in failure.waits} if failure and hung else {}
        self.cycle = failure.cycle if failure and hung else ()
        rows = len(lanes.lanes)
        self.sheet = Sheet(_WIDTH, (_TOP if lanes.hangs else 0.1) + rows * _ROW + _BOTTOM)
        self.span = lanes.end
        self._axis(rows)
        for rank, lane in enumerate(lanes.lanes):
            self.sheet.text(
                _LEFT - 0.15, self.y(rank), f"rank {rank}", 10, bold=True, align="right"
            )
            many = len(lane.bars) > _MOST_BARS
            for bar in lane.bars:
                if not many or self._width(bar) > _THINNEST / 4:
                    self._bar(rank, bar)
            for flight in lane.flights[:_MOST_BARS]:
                self._flight(rank, flight)
            self._marks(rank, lane.marks[:_MOST_BARS])
            self._draw_ending(rank, lane)
        for line in lanes.lines[:_MOST_LINES]:
            self._line(line)
        for wait in self.waits.values():
            self._wires(wait)
        self._legend()

    def x(self, time: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * time / self.span

    def y(self, rank: int) -> float:
        return _BOTTOM + (len(self.lanes.lanes) - rank - 0.5) * _ROW

    def _width(self, bar: Bar) -> float:
        return self.x(bar.end) - self.x(bar.start)

    def _axis(self, rows: int) -> None:
        top = _BOTTOM + rows * _ROW
        size, name = unit_of(self.lanes.end)
        end = self.lanes.end / size
        ticks = MaxNLocator(nbins=7, steps=[1, 2, 5, 10]).tick_values(0, end)
        for tick in (t for t in ticks if t <= end):
            x = self.x(tick * size)
            self.sheet.axes.plot([x, x], [_BOTTOM - 0.06, top], color="#e2e2e2", lw=0.8, zorder=0)
            self.sheet.text(x, _BOTTOM - 0.19, f"{tick:g} {name}" if tick else "0", 9, colour=FAINT)
        if self.lanes.hangs:
            x = self.x(self.lanes.end)
            self.sheet.axes.plot(
                [x, x], [_BOTTOM - 0.06, top + 0.06], color=INK, lw=1.2, ls="--", zorder=0
            )
            self.sheet.text(x, top + 0.2, "the run was ended here", 9, align="right")

    def _box(
        self, start: float, end: float, y: float, height: float, fill: Colour, edge: Colour = INK,
        line: float = 0, zorder: float = 1,
    ) -> None:  # fmt: skip
        """Draw a stretch of time around a height; a short one is as wide as can be seen."""
        place, width = (start, y - height / 2), max(end - start, _THINNEST)
        box = Rectangle(place, width, height, fc=fill, ec=edge, lw=line, zorder=zorder)
        self.sheet.axes.add_patch(box)

    def _bar(self, rank: int, bar: Bar) -> None:
        start = self.x(bar.start)
        end = _WIDTH - _RIGHT if not bar.over else self.x(bar.end)
        width = max(end - start, _THINNEST)
        y, colour = self.y(rank), colour_of(_COLOURS[bar.what])
        if bar.what == CODE:
            # lower than waits, so that they differ in shape as well as in colour
            self._box(start, end, y, 0.1, tint(colour), colour, 0.8, 0.5)
            return
        ground: Colour = tint(colour)
        if bar.over:
            self.sheet.bar(start, y, width, "", colour)
        else:
            look = self._standing(rank)
            ground = look.ground[0]
            self._box(start, end, y, 0.3, ground, look.line[0], 2.2)
        text = _fitting_label(bar.text, width)
        self.sheet.text(start + width / 2, y, text, 9, halo=ground)

    def _standing(self, rank: int) -> Standing:
        """Return how a rank that still waits is shown."""
        return Standing.CYCLE if rank in self.cycle else Standing.WAITS

    def _wires(self, wait: Wait) -> None:
        """Draw whom a rank waits for: dashed, from its bar to theirs, where the run was ended."""
        if wait.rank >= len(self.lanes.lanes) or len(wait.peers) > _MOST_PEERS:
            return
        for i, peer in enumerate(wait.peers):
            # wires between the same lanes stand beside each other
            x = self.x(self.lanes.end) - 0.16 - 0.2 * ((wait.rank + i) % 6)
            down = peer > wait.rank
            start = x, self.y(wait.rank) + (-0.16 if down else 0.16)
            end = x, self.y(peer) + (0.16 if down else -0.16)
            in_cycle = wait.rank in self.cycle and peer == self._next_in_cycle(wait.rank)
            look = Standing.CYCLE if in_cycle else Standing.WAITS
            self.sheet.arrow(start, end, colour=look.line[0], width=1.8, dashed=True, zorder=4)

    def _next_in_cycle(self, rank: int) -> int:
        """Return the rank that comes after another one in the cycle."""
        return self.cycle[(self.cycle.index(rank) + 1) % len(self.cycle)]

    def _flight(self, rank: int, flight: Bar) -> None:
        """Draw a collective in flight, below what the rank does meanwhile."""
        start = self.x(flight.start)
        end = self.x(flight.end) if flight.over else _WIDTH - _RIGHT
        colour = colour_of(_COLOURS["collective"])
        self._box(start, end, self.y(rank) - 0.205, 0.07, colour, "white", 0.6)

    def _marks(self, rank: int, marks: Sequence[Mark]) -> None:
        """Draw named places, with their names where there is room; the first comes first."""
        y, free = self.y(rank), 0.0
        for mark in marks:
            x, wide = self.x(mark.time), len(mark.text) * _LETTER
            self.sheet.axes.plot([x, x], [y + 0.06, y + 0.26], color=INK, lw=1.0, zorder=1.5)
            # to its right, or else to its left
            for start, align, at in ((x, "left", x + 0.04), (x - wide, "right", x - 0.04)):
                if start >= free and start + wide < _WIDTH - 0.05:
                    self.sheet.text(at, y + 0.2, mark.text, 8, align=align, halo="white")
                    free = max(x, start + wide)
                    break

    def _draw_ending(self, rank: int, lane: Lane) -> None:
        """Write how the rank ended, in a column of its own."""
        well = lane.end == "returned"
        text = lane.end.partition(" in ")[0] if "wait" in lane.end else lane.end
        text = "process gone" if "gone" in text else text
        mark = (Look.PASSED if well else Look.FAILED).mark
        x, y = _WIDTH - _RIGHT + 0.12, self.y(rank)
        colour = INK
        if "wait" in lane.end:
            mark, colour = Look.HUNG.mark, self._standing(rank).line[0]
        elif self.waits and well:
            # it is the one that others may wait for, so it is seen until the run was ended
            look, start = Standing.ENDED, self.x(self.lanes.end if lane.left is None else lane.left)
            text, colour = look.word, look.line[0]
            width = max(_WIDTH - _RIGHT - start, _THINNEST)
            self._box(start, start + width, y, 0.3, look.ground[0], colour, 1.6)
            inside = _fitting_label(text, width)
            self.sheet.text(start + width / 2, y, inside, 9, bold=True, halo=look.ground[0])
        bold = not well or bool(self.waits)
        self.sheet.text(x, y, f"{mark} {text}", 9, bold=bold, colour=colour, align="left")

    def _line(self, line: Line) -> None:
        down = line.destination > line.source
        start = self.x(line.start), self.y(line.source) + (-0.15 if down else 0.15)
        end = self.x(line.end), self.y(line.destination) + (0.15 if down else -0.15)
        # behind bars, so that no label is struck through
        width = 1.0 if len(self.lanes.lines) < 50 else 0.6
        self.sheet.arrow(start, end, width=width, zorder=0.3)

    def _legend(self) -> None:
        used = {
            bar.what
            for lane in self.lanes.lanes
            for bar in lane.bars
            if bar.over or bar.what == CODE
        }
        x = _LEFT
        for what in _COLOURS:
            if what not in used:
                continue
            colour, text = colour_of(_COLOURS[what]), what if what == CODE else f"waits in {what}"
            text = "waits in a collective" if what == "collective" else text
            high = 0.1 if what == CODE else 0.2
            self._box(x, x + 0.3, 0.3, high, tint(colour), colour, 1)
            x = self._legend_words(x + 0.38, text)
        if any(lane.flights for lane in self.lanes.lanes):
            self._box(x, x + 0.3, 0.305, 0.07, colour_of(_COLOURS["collective"]))
            x = self._legend_words(x + 0.38, "collective in flight")
        stuck = [
            self._standing(rank)
            for rank, lane in enumerate(self.lanes.lanes)
            if any(bar.what != CODE and not bar.over for bar in lane.bars)
        ]
        waits = "waits forever" if self.waits else "still waits"
        for look, text in ((Standing.WAITS, waits), (Standing.CYCLE, Standing.CYCLE.word)):
            if look in stuck:
                self._box(x, x + 0.3, 0.3, 0.2, look.ground[0], look.line[0], 2.2)
                x = self._legend_words(x + 0.38, text)
        if self.waits:
            colour = (Standing.WAITS if Standing.WAITS in stuck else Standing.CYCLE).line[0]
            self.sheet.arrow((x, 0.3), (x + 0.34, 0.3), colour=colour, width=1.8, dashed=True)
            x = self._legend_words(x + 0.42, "waits for")
        if self.lanes.lines:
            self.sheet.arrow((x, 0.3), (x + 0.32, 0.3), width=1.0)
            self._legend_words(x + 0.4, "message")

    def _legend_words(self, x: float, text: str) -> float:
        """Write words of the legend, and return where the next entry may begin."""
        self.sheet.text(x, 0.3, text, 9, align="left")
        return x + len(text) * _LETTER + 0.25


def _fitting_label(text: str, width: float) -> str:
    """Return as much of a label as fits: all of it, the call without its line, or its name."""
    call = text.partition(" (")[0]
    shorter: Iterator[str] = iter((text, call, call.partition(" ")[0]))
    return next((words for words in shorter if len(words) * _LETTER < width), "")
