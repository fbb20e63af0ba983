"""The report on a job that hangs: the culprit first, then who waits behind it, as text and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from headcount.core.verdict import HangKind, folded
from headcount.script.attach.readings import JobReadings, StackFrame
from headcount.script.attach.stacks import own_frame
from headcount.script.attach.verdicts import Verdict
from headcount.script.attach.waits import JobWaits
from headcount.script.report import wait_object, wrapped
from headcount.trace.flight_recorder import printable

__all__ = ["attach_json", "attach_text"]

#: Verdicts, and classes of ranks, that are shown.
_SHOWN = 12

#: Where Python waits for threads when the program has ended.
_AT_THE_END = "_shutdown", "threading.py"


def attach_text(
    readings: JobReadings, found: JobWaits, verdicts: Sequence[Verdict], width: int
) -> str:
    """Return the report in lines of at most ``width`` characters where words allow."""
    span = max((one.taken for one in readings.last.values()), default=0.0)
    span -= min((one.taken for one in readings.first.values()), default=0.0)
    of = f"{len(readings.last)} of {readings.world} ranks read twice in {span:.1f} s"
    lines = [("", f"{_headline(readings, found, verdicts)} ({of}, nothing stopped)")]
    lines += [("  also", _verdict_text(one)) for one in verdicts[1:_SHOWN]]
    if len(verdicts) > _SHOWN:
        lines.append(("  also", f"… and {len(verdicts) - _SHOWN} more, as --json lists"))
    culprits = {rank for one in verdicts for rank in one.culprits}
    classes: dict[str, list[int]] = {}
    for rank in sorted({*readings.last, *culprits}):
        classes.setdefault(_doing(readings, found, rank), []).append(rank)
    order = sorted(classes.items(), key=lambda one: (culprits.isdisjoint(one[1]), len(one[1])))
    lines += [(f"  {folded(ranks)}", text) for text, ranks in order[:_SHOWN]]
    if len(order) > _SHOWN:
        lines.append(("", f"  … and {len(order) - _SHOWN} more, as --json lists"))
    lines += [("  guess", text) for text in _guesses(verdicts)]
    lines += [("  missing", text) for text in _missing(readings)]
    # names and lines are a job's, and a file of another machine may hold anything
    return wrapped([(label, printable(text)) for label, text in lines], width)


def _headline(readings: JobReadings, found: JobWaits, verdicts: Sequence[Verdict]) -> str:
    if verdicts:
        mark = "✗" if verdicts[0].is_fault else "?"
        return f"{mark} {_verdict_text(verdicts[0])}"
    if all(one.calls is None and one.frames is None for one in readings.last.values()):
        return "? nothing could be read of what the ranks do"
    if found.waits:
        return "? ranks wait, and whom they wait for is not known"
    if readings.has_moved and all(one.calls is not None for one in readings.last.values()):
        return "✓ the job moves: no rank waits"
    return "? no rank is seen to wait; messages, and what could not be read, may hold some up"


def _verdict_text(one: Verdict) -> str:
    """Return a verdict in a sentence."""
    since = f"; they have waited for {_seconds(one.seconds)}" if one.seconds else ""
    return f"{one.label}: {one}{since}"


def _doing(readings: JobReadings, found: JobWaits, rank: int) -> str:
    """Return where a rank stands, and what it does there."""
    if readings.is_gone(rank):
        return "is gone: no process that was read has this rank"
    if rank not in readings.last:
        return "was not read: it is dead, or on another machine (--write DIR there, --job DIR)"
    reading = readings.last[rank]
    frame = own_frame(reading.frames)
    parts = [_place(frame)] if frame else []
    if reading.is_stopped:
        parts.append(f"is stopped by a signal or a debugger (state {reading.state})")
    elif rank in found.waits:
        parts.append(found.waits[rank].text)
    elif reading.lock is not None:
        lock = reading.lock
        parts.append(f"waits for the lock of {lock.path}, which process {lock.holder} holds")
    elif readings.ran(rank):
        parts.append("runs")
    elif "nanosleep" in reading.sleeps_in:
        parts.append("sleeps")
    else:
        inner = reading.frames[0] if reading.frames else None
        if inner is not None and (inner.name, PurePath(inner.file).name) == _AT_THE_END:
            parts.append("has come to the end of its program, and waits for threads of its own")
        elif inner is not None and inner is not frame:
            parts.append(f"stands in {inner.name} ({PurePath(inner.file).name}:{inner.line})")
        else:
            asleep = f", in the kernel's {reading.sleeps_in}" if reading.sleeps_in else ""
            parts.append(f"stands still{asleep}")
    if rank not in found.waits and reading.calls:
        last = reading.calls[-1]
        parts.append(
            f"its last call: {last.profiling_name.partition(':')[2]}, call"
            f" {last.collective_seq_id} of {found.dumps.calls[rank][-1].group}"
        )
    places = [_place(worker.frames[0]) for worker in reading.workers]
    for place in dict.fromkeys(places):
        number = places.count(place)
        parts.append(f"{number} process{'es' * (number > 1)} of its own at {place}")
    return "; ".join(parts) or "was read, but shows nothing"


def _place(frame: StackFrame) -> str:
    """Return a line with its text; of a long path its end."""
    path = PurePath(frame.file)
    here = os.getcwd()
    name = str(path.relative_to(here)) if path.is_relative_to(here) else frame.file
    if len(name) > 45:
        name = f"…/{'/'.join(path.parts[-2:])}"
    return f"{name}:{frame.line}{': ' * bool(frame.text)}{frame.text}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def _guesses(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for one in verdicts[:1]:
        if not one.is_fault and not one.patience:
            yield "whose fault it is cannot be told from what was read"
        elif not one.is_fault:
            yield (
                f"nobody can tell yet a slow rank from one that never comes: ask again when they"
                f" have waited for {_seconds(one.patience)}"
            )
        elif one.patience and one.kind is not HangKind.ENTERED_DIFFERENTLY:
            yield "only the time says that it will not come: it may just be slow"
        if one.kind is HangKind.ENTERED_DIFFERENTLY:
            yield "there is no telling which of them is wrong; the fewest are named first"


def _missing(readings: JobReadings) -> Iterator[str]:
    """Yield what could not be read, and the mend, for all ranks of which the same holds."""
    why: dict[str, list[int]] = {}
    for rank, reading in readings.last.items():
        for text in dict.fromkeys(reading.unread.values()):
            what = " and ".join(one for one, said in reading.unread.items() if said == text)
            why.setdefault(f"{what}: {text}", []).append(rank)
    for text, ranks in why.items():
        yield f"{folded(ranks)}, {text}"
    yield from dict.fromkeys(readings.notes)
    far = [one for one in range(readings.world) if one not in readings.last]
    if far and not readings.is_whole:
        yield f"{folded(far)}: not on this machine; attach --write DIR there, then --job DIR"


def attach_json(readings: JobReadings, found: JobWaits, verdicts: Sequence[Verdict]) -> str:
    """Return the same as one JSON object."""
    ranks: list[dict[str, Any]] = []
    for rank, reading in sorted(readings.last.items()):
        frame = own_frame(reading.frames)
        ranks.append(
            {
                "rank": rank,
                "pid": reading.pid,
                "state": reading.state,
                "file": frame.file if frame else None,
                "line": frame.line if frame else None,
                "text": _doing(readings, found, rank),
                "calls": len(reading.calls) if reading.calls is not None else None,
                "stack": [f"{one.name} ({one.file}:{one.line})" for one in reading.frames or ()],
            }
        )
    return json.dumps(
        {
            "version": 1,
            "ok": not any(one.is_fault for one in verdicts),
            "headline": _headline(readings, found, verdicts),
            "world": readings.world,
            "verdicts": [{**asdict(one), "fault": one.is_fault} for one in verdicts],
            "waits": [wait_object(wait) for _, wait in sorted(found.waits.items())],
            "ranks": ranks,
            "missing": list(_missing(readings)),
        },
        ensure_ascii=False,
    )
