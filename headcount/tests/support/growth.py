"""How the time of some work grows with its size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

#: What four times the work may take, in times of the work: linear is 4, quadratic is 16.
LIMIT = 6.0


def growth(work: Callable[[int], Callable[[], object]], size: int, runs: int = 3) -> float:
    """Return how many times as long a work of four times the size takes.

    Args:
        work: prepares the work of a size, and returns the function that does it.
        size: the smaller one.
        runs: of each size; the fastest counts, in processor time, since others use the machine.
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
    times = [(seconds(size), seconds(4 * size)) for _ in range(runs)]
    return min(large for _, large in times) / min(small for small, _ in times)
