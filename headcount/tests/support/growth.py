"""How the time of some work grows with its size."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType

#: What four times the work may take, in times of the work: linear is 4, quadratic is 16.  Halfway
#: between them, since work that no longer fits into a cache takes half as long again: 6.6 times was
#: seen on a busy machine.
LIMIT = 8.0


def growth(work: Callable[[int], Callable[[], object]], size: int, runs: int = 12) -> float:
    """Return how many times as long a work of four times the size takes.

    Args:
        work: prepares the work of a size, and returns the function that does it.
        size: the smaller one.
        runs: of each size, at most: the fastest counts, in processor time, since others use the
            machine; once that is linear, no further run can show more.
    """

    def seconds(of: int) -> float:
        do = work(of)
        gc.disable()  # whose passes grow with all that other tests have left
        try:
            started = time.process_time()
            do()
            return time.process_time() - started
        finally:
            gc.enable()

    # one after the other, so that a machine that grows slower does so for both
    small = large = float("inf")
    for _ in range(runs):
        small, large = min(small, seconds(size)), min(large, seconds(4 * size))
        if large < LIMIT * small:
            break
    return large / small


def steps_growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times as many steps of the interpreter a work of four times the size takes.

    The same number each time, on any machine; what a function of C does is one step.
    """

    def steps(of: int) -> int:
        do, count, before = work(of), 0, sys.gettrace()

        def trace(frame: FrameType, event: str, _: object) -> Callable[..., object]:
            nonlocal count
            frame.f_trace_opcodes = True
            count += event == "opcode"
            return trace

        sys.settrace(trace)
        try:
            do()
        finally:
            sys.settrace(before)
        return count

    return steps(4 * size) / steps(size)
