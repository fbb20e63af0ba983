"""A run in time: what every rank did when, and which messages were in flight.

The record knows when a rank entered the function and left it, when it began to
wait for an operation and when it saw it complete.  What it does between two
waits (it computes, sleeps, or asks ``is_completed``) the record cannot tell, so
all of that is the student's own code.  A message is in flight from the moment its
sender posts it until its receiver has seen it complete; the record does
not show when its bytes arrived in between.  A collective that is not waited for at
once is in flight from its call until its rank has seen it complete.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from PIL import Image

from grader.core.errors import RequestError
from grader.core.verdict import Failure, Site
from grader.report.drawing import FAINT, INK, Sheet, colour_of, darkened, tint
from grader.report.looks import Look
from grader.trace.trace import CallSpan, Operation, Trace

__all__ = [
    "Bar",
    "CODE",
    "Lane",
    "Lanes",
    "Line",
    "Mark",
    "lanes",
    "timeline_png",
    "timeline_svg",
    "unit_of",
]


# The run as data. -----------------------------------------------------------------

#: What a rank does while it waits for nothing.
CODE = "your code"

#: Distinct calls of a rank that the text lists; further ones are only counted.
_MOST_CALLS = 8


@dataclass(frozen=True)
class Bar:
    """A stretch of a rank's time.

    Attributes:
        start, end: nanoseconds since the beginning of the run.
        what: :data:`CODE`, or what it waits for: ``send``, ``recv``, or
            ``collective``.
        text: "recv from 2 (line 7)"; empty for its own code.
        over: whether it had ended when the record was closed.
    """

    start: int
    end: int
    what: str
    text: str = ""
    over: bool = True


@dataclass(frozen=True)
class Line:
    """A message in flight, drawn from one rank's lane to another's; times as in :class:`Bar`."""

    source: int
    destination: int
    start: int
    end: int


@dataclass(frozen=True)
class Mark:
    """A named place in the program, and when a rank passed it; times as in :class:`Bar`."""

    time: int
    text: str


@dataclass(frozen=True)
class Lane:
    """One rank.

    Attributes:
        bars: its time, from entering the function to leaving it.
        calls: what it called, in program order.
        end: how it ended, in words.
        left: when it left, in nanoseconds; ``None`` if it never did.
        flights: collectives that it began and did not wait for at once.
        marks: the named places that it passed.
    """

    bars: tuple[Bar, ...]
    calls: tuple[str, ...]
    end: str
    left: int | None
    flights: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()

    def seconds(self, what: str) -> float:
        """Return the total seconds that it spent on this."""
        return sum(bar.end - bar.start for bar in self.bars if bar.what == what) / 1e9

    def between(self, start: int, end: int) -> Lane:
        """Return what lies between two moments, counted from the first."""
        bars, flights = (
            tuple(
                replace(bar, start=max(bar.start, start) - start, end=min(bar.end, end) - start)
                for bar in bars
                if bar.start < end and bar.end > start
            )
            for bars in (self.bars, self.flights)
        )
        marks = tuple(
            Mark(mark.time - start, mark.text) for mark in self.marks if start <= mark.time <= end
        )
        left = None if self.left is None else self.left - start
        return replace(self, bars=bars, flights=flights, marks=marks, left=left)

    @property
    def in_flight(self) -> float:
        """Seconds during which at least one of :attr:`flights` was in flight."""
        return sum(end - start for start, end in _joined(self.flights)) / 1e9

    @property
    def hidden(self) -> float:
        """Seconds of those during which the rank was in its own code."""
        own = [(bar.start, bar.end) for bar in self.bars if bar.what == CODE]
        return (
            sum(
                max(0, min(end, until) - max(start, since))
                for start, end in _joined(self.flights)
                for since, until in own
            )
            / 1e9
        )


@dataclass(frozen=True)
class Lanes:
    """A run in time.

    Attributes:
        lanes: by rank.
        lines: the messages that were received.
        end: nanoseconds from the first entry to the last thing that is known.
        failure: why the run failed, if it did.
    """

    lanes: tuple[Lane, ...]
    lines: tuple[Line, ...]
    end: int
    failure: Failure | None = None

    def between(self, since: str | None, until: str | None) -> Lanes:
        """Return the part from the first mark ``since`` of any rank to the last mark ``until``.

        Args:
            since, until: texts of marks; ``None`` is the beginning, or the end.

        Raises:
            RequestError: no rank has come by such a mark, or by the one only after the other.
        """
        start = 0 if since is None else min(self._times(since))
        end = self.end if until is None else max(self._times(until))
        if start >= end:
            raise RequestError(f"the mark {until!r} does not come after {since!r}")
        shown = tuple(lane.between(start, end) for lane in self.lanes)
        lines = tuple(
            replace(line, start=max(line.start - start, 0), end=min(line.end, end) - start)
            for line in self.lines
            if line.start < end and line.end > start
        )
        return Lanes(shown, lines, end - start, self.failure)

    def _times(self, text: str) -> list[int]:
        found = [mark.time for lane in self.lanes for mark in lane.marks if mark.text == text]
        if not found:
            known = sorted({mark.text for lane in self.lanes for mark in lane.marks})
            raise RequestError(
                f"no rank has come by a mark {text!r}; marks are {', '.join(map(repr, known))}"
                if known
                else f"no rank has come by a mark {text!r}: call mark({text!r}) in the function"
            )
        return found

    @property
    def hangs(self) -> bool:
        """Whether a rank was still in the function when the run was ended."""
        return any(not bar.over for lane in self.lanes for bar in lane.bars)

    def table(self) -> str:
        """Return what every rank did, in its own order; times are left out, since runs differ."""
        lines = []
        for rank, lane in enumerate(self.lanes):
            calls = ", ".join(_short(lane.calls)) or "no communication"
            lines.append(f"rank {rank}:  {calls};  {lane.end}")
        return "\n".join(lines)


def lanes(trace: Trace, failure: Failure | None = None) -> Lanes:
    """Return the record of a run by rank and in time.

    Args:
        trace: the record.
        failure: why the run failed, if it did; its waits never end.
    """
    spans = trace.call_spans or tuple(map(_guessed, trace.operations))
    moments = [m for op in _every(trace) for m in (op.posted, op.blocked, op.done) if m is not None]
    moments += [mark.time for marks in trace.marks for mark in marks]
    moments += [m for span in spans for m in (span.entered, span.left) if m is not None]
    zero = min(moments, default=0)
    last = max([*moments, trace.closed or 0], default=0)
    if all(span.left is not None for span in spans):
        # later times are the grader's own
        last = max(moments, default=0)
    stuck = {wait.rank for wait in failure.waits} if failure else set()
    found = tuple(
        _lane(trace, rank, span, zero, last, rank in stuck) for rank, span in enumerate(spans)
    )
    lines = tuple(
        Line(op.rank, op.partner.rank, op.posted - zero, op.partner.done - zero)
        for op in trace.sends()
        if op.partner is not None and op.partner.done is not None
    )
    return Lanes(found, lines, max(last - zero, 1), failure)


def _every(trace: Trace) -> Iterator[Operation]:
    for operations in trace.operations:
        yield from operations


def _guessed(operations: Sequence[Operation]) -> CallSpan:
    """Return the span from the first to the last event of a rank, where no better one is known."""
    ends = [op.done for op in operations if op.done is not None]
    if not operations or len(ends) < len(operations):
        return CallSpan(operations[0].posted if operations else None)
    return CallSpan(operations[0].posted, max(ends), "returned")


def _lane(trace: Trace, rank: int, span: CallSpan, zero: int, last: int, for_ever: bool) -> Lane:
    operations = trace.operations[rank]
    bars: list[Bar] = []
    if span.entered is not None:
        bars = list(_bars(operations, span.entered - zero, span.left, zero, last))
    calls = tuple(_text(op, op.site) for op in operations)
    left = None if span.left is None else span.left - zero
    flights = tuple(_flights(operations, zero, last)) if bars else ()
    marks = tuple(
        Mark(mark.time - zero, mark.text) for mark in dict(enumerate(trace.marks)).get(rank, ())
    )
    return Lane(tuple(bars), calls, _end(span, bars, for_ever), left, flights, marks)


def _flights(operations: Sequence[Operation], zero: int, last: int) -> Iterator[Bar]:
    """Yield collectives that were begun, and waited for later or never."""
    for op in operations:
        if op.is_message or op.kind == "new_group":
            continue
        # a wait in the line of the call follows it at once
        if op.blocked is None or op.blocked_site != op.site:
            seen = op.done if op.given_up is None else op.given_up
            end = last if seen is None else seen
            yield Bar(
                op.posted - zero, end - zero, "collective", _text(op, op.site), seen is not None
            )


def _joined(bars: Sequence[Bar]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of time that the bars cover together."""
    at = None
    for bar in sorted(bars, key=lambda bar: bar.start):
        if at is not None and bar.start <= at[1]:
            at = (at[0], max(at[1], bar.end))
            continue
        if at is not None:
            yield at
        at = (bar.start, bar.end)
    if at is not None:
        yield at


def _bars(
    operations: Sequence[Operation], entered: int, left: int | None, zero: int, last: int
) -> Iterator[Bar]:
    """Yield waits, and the student's own code between them."""
    at, end = entered, (last if left is None else left) - zero
    waits = [op for op in operations if op.blocked is not None]
    for op in sorted(waits, key=lambda op: op.blocked or 0):
        start = max((op.blocked or 0) - zero, at)
        seen = op.done if op.given_up is None else op.given_up
        over = seen is not None or left is not None
        until = end if seen is None else min(seen - zero, end)
        if start >= end or until < start:
            continue
        if start > at:
            yield Bar(at, start, CODE)
        what = op.kind if op.is_message else "collective"
        yield Bar(start, until, what, _text(op, op.blocked_site or op.site), over)
        at = until
        if not over:
            return
    if at < end or left is None:
        yield Bar(at, end, CODE, over=left is not None)


def _end(span: CallSpan, bars: Sequence[Bar], for_ever: bool) -> str:
    """Return how a rank ended, in words."""
    if span.entered is None:
        return "never called"
    if span.how == "gone":
        return "its process is gone"
    if span.how:
        return span.how
    if bars and bars[-1].text:
        how = "waits forever in" if for_ever else "still waits in"
        return f"{how} {bars[-1].text}"
    return "still runs"


def _text(op: Operation, site: Site) -> str:
    """Return a call, or the wait for one, in words: "send to 1 (line 5)"."""
    if op.kind == "send":
        what = f"send to {op.peer}"
    elif op.kind == "recv":
        what = "recv from any rank" if op.wildcard else f"recv from {op.peer}"
    else:
        what = op.kind
    return f"{what} ({site})"


def _short(calls: Sequence[str]) -> Iterator[str]:
    """Yield distinct calls in order of first use, with counts; of a long list the beginning."""
    counts = Counter(calls)
    for text, count in list(counts.items())[:_MOST_CALLS]:
        yield text if count == 1 else f"{count} × {text}"
    rest = sum(list(counts.values())[_MOST_CALLS:])
    if rest:
        yield f"{rest} more calls"


# The run as a picture. ------------------------------------------------------------

#: Inches: of the picture, of its margins, and of a lane.
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP, _BOTTOM = 10.0, 0.8, 1.35, 0.56, 0.45, 0.95

#: Width of a letter of a label, in inches.
_LETTER = 0.082

#: Smallest width of a bar, in inches, so that short ones are visible.
_THINNEST = 0.012

#: Largest numbers of bars and of messages that are drawn; more could not be told apart.
_MOST_BARS, _MOST_LINES = 1500, 400

#: The colour of each kind of bar, as an index of the palette.
_COLOURS = {CODE: 7, "send": 1, "recv": 0, "collective": 3}

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
    return _Drawing(lanes).sheet.small_png(_DPI)


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


class _Drawing:
    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
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
            self._ending(rank, lane.end)
        for line in lanes.lines[:_MOST_LINES]:
            self._line(line)
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

    def _bar(self, rank: int, bar: Bar) -> None:
        start = self.x(bar.start)
        end = _WIDTH - _RIGHT if not bar.over else self.x(bar.end)
        width = max(end - start, _THINNEST)
        y, colour = self.y(rank), colour_of(_COLOURS[bar.what])
        if bar.what == CODE:
            # lower than waits, so that they differ in shape as well as in colour
            fill = tint(colour)
            piece = Rectangle((start, y - 0.05), width, 0.1, fc=fill, ec=colour, lw=0.8, zorder=0.5)
            self.sheet.axes.add_patch(piece)
        else:
            self.sheet.bar(start, y, width, "", colour, "" if bar.over else "////", not bar.over)
            text = _fitting(bar.text, width)
            ground = tint(colour) if bar.over else "white"
            self.sheet.text(start + width / 2, y, text, 9, halo=ground)

    def _flight(self, rank: int, flight: Bar) -> None:
        """Draw a collective in flight, below what the rank does meanwhile."""
        start = self.x(flight.start)
        end = self.x(flight.end) if flight.over else _WIDTH - _RIGHT
        piece = Rectangle(
            (start, self.y(rank) - 0.24), max(end - start, _THINNEST), 0.07,
            fc=colour_of(_COLOURS["collective"]), ec="white", lw=0.6, zorder=1,
        )  # fmt: skip
        self.sheet.axes.add_patch(piece)

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

    def _ending(self, rank: int, end: str) -> None:
        """Write how the rank ended, in a column of its own."""
        well = end == "returned"
        text = end.partition(" in ")[0] if "wait" in end else end
        text = "process gone" if "gone" in text else text
        mark = (Look.PASSED if well else Look.FAILED).mark
        x = _WIDTH - _RIGHT + 0.12
        self.sheet.text(x, self.y(rank), f"{mark} {text}", 9, bold=not well, align="left")

    def _line(self, line: Line) -> None:
        down = line.destination > line.source
        start = self.x(line.start), self.y(line.source) + (-0.15 if down else 0.15)
        end = self.x(line.end), self.y(line.destination) + (0.15 if down else -0.15)
        # behind bars, so that no label is struck through
        width = 1.0 if len(self.lanes.lines) < 50 else 0.6
        self.sheet.arrow(start, end, width=width, zorder=0.3)

    def _legend(self) -> None:
        used = {bar.what for lane in self.lanes.lanes for bar in lane.bars}
        x = _LEFT
        for what in _COLOURS:
            if what not in used:
                continue
            colour, text = colour_of(_COLOURS[what]), what if what == CODE else f"waits in {what}"
            text = "waits in a collective" if what == "collective" else text
            high = 0.1 if what == CODE else 0.2
            fill = Rectangle((x, 0.3 - high / 2), 0.3, high, fc=tint(colour), ec=colour, lw=1)
            self.sheet.axes.add_patch(fill)
            x = self._said(x + 0.38, text)
        if any(lane.flights for lane in self.lanes.lanes):
            thin = Rectangle((x, 0.27), 0.3, 0.07, fc=colour_of(_COLOURS["collective"]), lw=0)
            self.sheet.axes.add_patch(thin)
            x = self._said(x + 0.38, "collective in flight")
        if self.lanes.hangs:
            box = Rectangle((x, 0.2), 0.3, 0.2, fc="white", ec=INK, lw=2.2, hatch="////")
            self.sheet.axes.add_patch(box)
            x = self._said(x + 0.38, "did not end")
        if self.lanes.lines:
            self.sheet.arrow((x, 0.3), (x + 0.32, 0.3), width=1.0)
            self._said(x + 0.4, "message")

    def _said(self, x: float, text: str) -> float:
        """Write words of the legend, and return where the next entry may begin."""
        self.sheet.text(x, 0.3, text, 9, align="left")
        return x + len(text) * _LETTER + 0.25


def _fitting(text: str, width: float) -> str:
    """Return as much of a label as fits: all of it, the call without its line, or its name."""
    call = text.partition(" (")[0]
    shorter: Iterator[str] = iter((text, call, call.partition(" ")[0]))
    return next((words for words in shorter if len(words) * _LETTER < width), "")
