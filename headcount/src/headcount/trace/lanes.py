"""A run in time, as data: what every rank did when, and which messages were in flight.

The record knows when a rank entered the function and left it, when it began to
wait for an operation and when it saw it complete.  What it does between two
waits (it computes, sleeps, or asks ``is_completed``) the record cannot tell, so
all of that is the student's own code.  A message is in flight from the moment its
sender posts it until its receiver has seen it complete; the record does
not show when its bytes arrived in between.  A collective that is not waited for at
once is in flight from its call until its rank has seen it complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headcount.core.errors import RequestError
from headcount.core.verdict import Failure, Site
from headcount.trace.trace import CallSpan, Operation, Trace

__all__ = ["CODE", "Bar", "Lane", "Lanes", "Line", "Mark", "lanes"]


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
        return sum(end - start for start, end in _merge_stretches(self.flights)) / 1e9

    @property
    def hidden(self) -> float:
        """Seconds of those during which the rank was in its own code."""
        own = [(bar.start, bar.end) for bar in self.bars if bar.what == CODE]
        return (
            sum(
                max(0, min(end, until) - max(start, since))
                for start, end in _merge_stretches(self.flights)
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
        zero: the time of its beginning on the ranks' clock.
    """

    lanes: tuple[Lane, ...]
    lines: tuple[Line, ...]
    end: int
    failure: Failure | None = None
    zero: int = 0

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
        return Lanes(shown, lines, end - start, self.failure, self.zero + start)

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
            calls = ", ".join(_count_calls(lane.calls)) or "no communication"
            lines.append(f"rank {rank}:  {calls};  {lane.end}")
        return "\n".join(lines)


def lanes(trace: Trace, failure: Failure | None = None) -> Lanes:
    """Return the record of a run by rank and in time.

    Args:
        trace: the record.
        failure: why the run failed, if it did; its waits never end.
    """
    spans = trace.call_spans or tuple(map(_guess_span, trace.operations))
    times: list[int | None] = [mark.time for marks in trace.marks for mark in marks]
    for operations in trace.operations:
        times += [time for op in operations for time in (op.posted, op.blocked, op.done)]
    times += [time for span in spans for time in (span.entered, span.left)]
    moments = [time for time in times if time is not None]
    zero = min(moments, default=0)
    last = max([*moments, trace.closed or 0], default=0)
    if all(span.left is not None for span in spans):
        # later times are our own
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
    return Lanes(found, lines, max(last - zero, 1), failure, zero)


def _guess_span(operations: Sequence[Operation]) -> CallSpan:
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
    calls = tuple(_call_words(op, op.site) for op in operations)
    left = None if span.left is None else span.left - zero
    flights = tuple(_flights(operations, zero, last)) if bars else ()
    marks = tuple(
        Mark(mark.time - zero, mark.text) for mark in dict(enumerate(trace.marks)).get(rank, ())
    )
    return Lane(tuple(bars), calls, _ending_words(span, bars, for_ever), left, flights, marks)


def _flights(operations: Sequence[Operation], zero: int, last: int) -> Iterator[Bar]:
    """Yield collectives that were begun, and waited for later or never."""
    for op in operations:
        if op.is_message or op.makes_group:
            continue
        # a wait in the line of the call follows it at once
        if op.blocked is None or op.blocked_site != op.site:
            seen = op.done if op.given_up is None else op.given_up
            end = last if seen is None else seen
            yield Bar(
                op.posted - zero,
                end - zero,
                "collective",
                _call_words(op, op.site),
                seen is not None,
            )


def _merge_stretches(bars: Sequence[Bar]) -> list[tuple[int, int]]:
    """Return the stretches of time that the bars cover together."""
    found: list[tuple[int, int]] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        if found and bar.start <= found[-1][1]:
            start, end = found.pop()
            found.append((start, max(end, bar.end)))
        else:
            found.append((bar.start, bar.end))
    return found


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
        yield Bar(start, until, what, _call_words(op, op.blocked_site or op.site), over)
        at = until
        if not over:
            return
    if at < end or left is None:
        yield Bar(at, end, CODE, over=left is not None)


def _ending_words(span: CallSpan, bars: Sequence[Bar], for_ever: bool) -> str:
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


def _call_words(op: Operation, site: Site) -> str:
    """Return a call, or the wait for one, in words: "send to 1 (line 5)"."""
    if op.kind == "send":
        what = f"send to {op.peer}"
    elif op.kind == "recv":
        what = "recv from any rank" if op.wildcard else f"recv from {op.peer}"
    else:
        what = op.kind
    return f"{what} ({site})"


def _count_calls(calls: Sequence[str]) -> Iterator[str]:
    """Yield distinct calls in order of first use, with counts; of a long list the beginning."""
    counts = Counter(calls)
    for text, count in list(counts.items())[:_MOST_CALLS]:
        yield text if count == 1 else f"{count} × {text}"
    rest = sum(list(counts.values())[_MOST_CALLS:])
    if rest:
        yield f"{rest} more calls"
