"""How long ranks have waited, and for how long a job may pause before that means something."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from headcount.script.attach.readings import JobReadings
from headcount.script.attach.stacks import own_frame
from headcount.script.attach.waits import JobWaits

__all__ = ["patience_with", "waited"]

#: Seconds that others have waited at least before a rank is accused that may come: one that stands
#: still or turns in a loop of its own, and one that works.
_PATIENCE, _PATIENCE_WORKING = 10.0, 60.0

#: How many times as long as the job's longest pause it has to be.
_PAUSES = 5


def patience_with(readings: JobReadings, culprits: Sequence[int]) -> float:
    """Return for how many seconds others have to wait for ranks before these are accused."""
    works = any(readings.ran(rank) and not _loops(readings, rank) for rank in culprits)
    least = _PATIENCE_WORKING if works else _PATIENCE
    return max(least, _PAUSES * _longest_pause(readings))


def _loops(readings: JobReadings, rank: int) -> bool:
    """Return whether a rank has run the same function of the person's own, which called nothing."""
    before, after = readings.first[rank].frames, readings.last[rank].frames
    then, now = own_frame((before or [])[:1]), own_frame((after or [])[:1])
    if then is None or now is None:
        return False
    return (then.file, then.name) == (now.file, now.name)


def waited(readings: JobReadings, found: JobWaits, rank: int) -> float:
    """Return for how many seconds a rank has waited at least."""
    if rank not in found.waits:
        return 0.0
    before, after = readings.first[rank], readings.last[rank]
    if rank in found.calls:
        pending = next(call for call in after.calls or () if not call.retired)
        return max(0.0, after.taken - pending.time_created_ns / 1e9)
    return after.taken - before.taken


def _longest_pause(readings: JobReadings) -> float:
    """Return the most seconds that have passed from one call of a rank to the next."""
    times = [[call.time_created_ns for call in one.calls or ()] for one in readings.last.values()]
    return max((b - a for made in times for a, b in pairwise(made)), default=0) / 1e9
