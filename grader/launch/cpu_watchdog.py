"""Whether ranks that say nothing will ever end.

A rank that waits for a message is known to wait.  One that does not, and does
not end, either computes or sleeps, and the operating system knows which.  The
time that it is *given* is its own, however busy the machine is; so these
limits can be far tighter than one on the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from grader.trace.deadlock import waiting
from grader.trace.message_matcher import Board

__all__ = ["Vigil"]

#: Seconds between two looks.
PERIOD = 0.1

#: A process that does nothing until something happens to it.
_ASLEEP = (psutil.STATUS_SLEEPING, psutil.STATUS_STOPPED, psutil.STATUS_IDLE)


@dataclass(frozen=True)
class _Sight:
    """A process at one moment: seconds of processor time, and whether it sleeps."""

    used: float
    asleep: bool


class Vigil:
    """Looks at the processes of a world during a call.

    Args:
        find: the processes, by rank.
        effort: seconds that a rank may compute, or that all may sleep.
    """

    def __init__(self, find: Callable[[], Mapping[int, psutil.Process]], effort: float) -> None:
        self._find = find
        self._effort = effort
        self._processes: Mapping[int, psutil.Process] = {}
        self._first: dict[int, _Sight] = {}
        self._last: dict[int, _Sight] = {}
        self._looked = time.monotonic()
        self._slept = 0.0
        #: when to look again, on the monotonic clock
        self.due = self._looked + PERIOD if effort < math.inf else math.inf

    def stir(self) -> None:
        """A rank has said something, so they do not all sleep."""
        self._slept = 0.0

    def look(self, board: Board) -> str:
        """After what a rank will never end any more; empty as long as it may."""
        now = time.monotonic()
        self.due = now + PERIOD
        idle, self._looked = min(now - self._looked, 2 * PERIOD), now
        sights = self._sights()
        if not self._first:
            self._first, self._last = sights, sights
            return ""
        waits = waiting(board)
        for rank in sights.keys() & self._first.keys() - waits - board.ended:
            if sights[rank].used - self._first[rank].used > self._effort:
                return f"{self._effort:g} s of computing"
        still = sights == self._last and all(sight.asleep for sight in sights.values())
        self._slept = self._slept + idle if still else 0.0
        self._last = sights
        if self._slept > self._effort and len(waits | board.ended) < board.size:
            return f"{self._effort:g} s of sleep"
        return ""

    def _sights(self) -> dict[int, _Sight]:
        if not self._processes:
            self._processes = self._find()
        sights = {}
        for rank, process in self._processes.items():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    asleep = process.status() in _ASLEEP
            except psutil.Error:  # it has ended, which others notice
                continue
            sights[rank] = _Sight(times.user + times.system, asleep)
        return sights
