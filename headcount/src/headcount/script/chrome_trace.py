"""The record of a run in Chrome's Trace Event Format, which Perfetto and chrome://tracing open.

Every rank is a process, with its code and its waits.  Collectives that are in flight are
asynchronous events beside them.  A message is an arrow from its send to its receive, a collective
one from the rank that called it last to each that waited.

The format is described in *Trace Event Format*, by Nat Duca and Dan Sinclair (Google, 2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headcount.core.verdict import Failure
from headcount.trace.lanes import Bar, lanes
from headcount.trace.trace import Operation, Trace

__all__ = ["chrome_trace"]

#: The thread of a rank; its other threads' waits are among those of this one.
_THREAD = 0


def chrome_trace(trace: Trace, failure: Failure | None = None) -> dict[str, Any]:
    """Return a record as a JSON object, with times in microseconds from the beginning.

    Args:
        trace: the record.
        failure: why the run failed, if it did; its waits never end.
    """
    run = lanes(trace, failure)
    events: list[dict[str, Any]] = []
    for rank, lane in enumerate(run.lanes):
        events += _names(rank)
        events += [_slice(rank, bar) for bar in lane.bars]
        for number, bar in enumerate(lane.flights):
            events += _flight(rank, number, bar)
        events += [
            {"ph": "i", "s": "t", "pid": rank, "tid": _THREAD, "ts": m.time / 1e3, "name": m.text}
            for m in lane.marks
        ]
    for number, (op, other, what) in enumerate(_arrows(trace)):
        common = {"id": number, "cat": what, "name": _label(op), "tid": _THREAD}
        start, end = (op.posted - run.zero) / 1e3, ((other.done or 0) - run.zero - 1) / 1e3
        events.append({"ph": "s", "pid": op.rank, "ts": start, **common})
        # bound to the slice that ends there: the wait, and not the code after it
        events.append({"ph": "f", "bp": "e", "pid": other.rank, "ts": max(start, end), **common})
    found: dict[str, Any] = {"traceEvents": events, "displayTimeUnit": "ms"}
    if failure is not None:
        found["otherData"] = {"diagnosis": failure.diagnosis.value, "failure": failure.message}
    return found


def _names(rank: int) -> Iterator[dict[str, Any]]:
    """Yield the names of a rank's process and thread, and its place."""
    for name, arguments in (
        ("process_name", {"name": f"rank {rank}"}),
        ("process_sort_index", {"sort_index": rank}),
        ("thread_name", {"name": "code and waits"}),
    ):
        yield {"ph": "M", "pid": rank, "tid": _THREAD, "name": name, "args": arguments}


def _slice(rank: int, bar: Bar) -> dict[str, Any]:
    """Return a stretch of a rank's time; one that has not ended says so."""
    event: dict[str, Any] = {
        "ph": "X", "pid": rank, "tid": _THREAD, "cat": bar.what, "name": bar.text or bar.what,
        "ts": bar.start / 1e3, "dur": (bar.end - bar.start) / 1e3,
    }  # fmt: skip
    return event if bar.over else {**event, "args": {"ended": False}, "cname": "terrible"}


def _flight(rank: int, number: int, bar: Bar) -> Iterator[dict[str, Any]]:
    """Yield both ends of a collective in flight, of which several may overlap."""
    common = {
        "pid": rank, "tid": _THREAD, "cat": "in flight", "id2": {"local": str(number)},
        "name": bar.text,
    }  # fmt: skip
    yield {"ph": "b", "ts": bar.start / 1e3, **common}
    yield {"ph": "e", "ts": bar.end / 1e3, **common}


def _label(op: Operation) -> str:
    return f"{op.count} {op.dtype}" if op.is_message else op.kind


def _arrows(trace: Trace) -> Iterator[tuple[Operation, Operation, str]]:
    """Yield where each arrow begins and ends, and what it is."""
    for op in trace.sends():
        if op.partner is not None and op.partner.done is not None:
            yield op, op.partner, "message"
    for operations in trace.operations:
        for op in operations:
            if op.is_message or not op.matched or op.done is None:
                continue
            last = max(op.callers.values(), key=lambda one: one.posted)
            if last is not op:
                yield last, op, "collective"
