"""The watchdog on processor time, on processes whose times are given."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import psutil
import pytest

from headcount.launch.watchdog import PERIOD, CpuWatchdog
from headcount.trace.message_matcher import MessageMatcher


class Process:
    """A process that has used so many seconds, by the times that it was looked at."""

    def __init__(self, *used):
        self._used = iter(used)

    def oneshot(self):
        return contextlib.nullcontext()

    def cpu_times(self):
        return SimpleNamespace(user=next(self._used), system=0.0)

    def status(self):
        return psutil.STATUS_RUNNING


@pytest.mark.parametrize(
    ("used", "looks"),
    [
        ([PERIOD * i for i in range(30)], 12),
        # a machine that stood still for three seconds, in which this process was to run
        ([0.0, 3.0, *(3.0 + PERIOD * i for i in range(30))], 12),
    ],
)
def test_a_rank_that_computes_is_found_and_a_machine_that_stands_still_is_no_computing(used, looks):
    process, state = Process(*used), MessageMatcher(1)
    watchdog = CpuWatchdog(lambda: {0: process}, 1.0)
    said = [watchdog.look(state) for _ in range(looks)]
    assert said == [*[""] * (looks - 1), "1 s of computing"]
