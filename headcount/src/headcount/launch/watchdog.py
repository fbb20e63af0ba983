"""Whether ranks that report nothing will ever end, and how much memory they have.

A rank that waits for a message is known to wait.  A rank that does not wait, and does not end,
either computes or sleeps, and the operating system knows which.  The processor time that it
uses does not depend on how busy the machine is, so that limits on it can be far tighter than
limits by the wall clock.  Only a virtual machine that its host lets stand still counts that time
for whoever was running; so of the time between two samples no more counts than a rank can use.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from headcount.trace.deadlock import waiting
from headcount.trace.wait_state import WaitState

__all__ = ["CpuWatchdog", "memory_of"]

#: Seconds between two samples.
PERIOD = 0.1

#: States of a process that does nothing until an event wakes it up.
_ASLEEP = (psutil.STATUS_SLEEPING, psutil.STATUS_STOPPED, psutil.STATUS_IDLE)


@dataclass(frozen=True)
class _ProcessSample:
    """A process at one moment: its processor time in seconds, and whether it sleeps."""

    used: float
    asleep: bool


class CpuWatchdog:
    """A watchdog on the processor time of a world's processes during a call.

    Args:
        find: returns the processes that run, by rank.
        effort: seconds that a rank may compute, or that all ranks may sleep.
    """

    def __init__(self, find: Callable[[], Mapping[int, psutil.Process]], effort: float) -> None:
        self._find = find
        self._effort = effort
        self._processes: Mapping[int, psutil.Process] = {}
        self._last: dict[int, _ProcessSample] = {}
        #: seconds that each rank has computed
        self._computed: defaultdict[int, float] = defaultdict(float)
        self._looked = time.monotonic()
        self._slept = 0.0
        #: when to take the next sample, on the monotonic clock
        self.due = self._looked + PERIOD if effort < math.inf else math.inf

    def note_activity(self) -> None:
        """Note that a rank has reported something, so that not all sleep."""
        self._slept = 0.0

    def look(self, state: WaitState) -> str:
        """Return why the ranks can no longer finish, or an empty string while they still can."""
        now = time.monotonic()
        self.due = now + PERIOD
        idle, self._looked = min(now - self._looked, 2 * PERIOD), now
        samples = self._samples()
        if not self._last:
            self._last = samples
            return ""
        for rank in samples.keys() & self._last.keys():
            used = samples[rank].used - self._last[rank].used
            self._computed[rank] += min(used, 2 * PERIOD)
        waits = waiting(state)
        for rank in samples.keys() - waits - state.ended:
            if self._computed[rank] > self._effort:
                return f"{self._effort:g} s of computing"
        still = samples == self._last and all(sample.asleep for sample in samples.values())
        self._slept = self._slept + idle if still else 0.0
        self._last = samples
        if self._slept > self._effort and len(waits | state.ended) < state.size:
            return f"{self._effort:g} s of sleep"
        return ""

    def _samples(self) -> dict[int, _ProcessSample]:
        if not self._processes:
            self._processes = self._find()
        samples = {}
        for rank, process in self._processes.items():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    asleep = process.status() in _ASLEEP
            except psutil.Error:  # it has ended, which the supervisor notices
                continue
            samples[rank] = _ProcessSample(times.user + times.system, asleep)
        return samples


#: What Linux counts of a process's memory, files that it maps aside; see ``proc_pid_status(5)``.
_MEMORY = ("RssAnon", "RssShmem", "VmSwap")


def memory_of(processes: Mapping[int, psutil.Process]) -> dict[int, int]:
    """Return the bytes of memory of each of these processes, as the kernel counts them.

    What a process has inherited counts, whether it has written to it or not: so the count grows
    by what it allocates, and only by that.  Where the kernel does not say, as on macOS, the
    result is empty.
    """
    found = {}
    for rank, process in processes.items():
        # one that has ended is noticed by the supervisor
        with suppress(OSError):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines)
            if fields.keys() >= set(_MEMORY):
                found[rank] = sum(int(fields[name].split()[0]) << 10 for name in _MEMORY)
    return found
