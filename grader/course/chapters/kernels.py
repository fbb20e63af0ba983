"""What ``time_kernel`` is given to time, and how one sees what it did."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from grader.course.cases import Case, Draw, Kind
from grader.rank.clock import Clock, shown_to
from grader.rank.device import Device, on_device, played, without_device

__all__ = [
    "LAUNCH",
    "NOTICE",
    "answer",
    "kernels",
    "mean",
    "median",
    "time_in_rank",
    "timed",
    "total",
]

#: The unit of all times: it is exact in binary fractions of seconds and in nanoseconds.
_TICK = 1 / 512

#: Seconds of the host's that a launch takes, less than any kernel; and until it has noticed
#: that the device is done.
LAUNCH, NOTICE = _TICK, 3 * _TICK

#: Calls to warm up, calls to time, and where the tensors are; the plainest first.
_PLANS = (
    (0, 1, "cpu"),
    (2, 5, "cpu"),
    (3, 4, "cpu"),
    (1, 3, "nowhere"),
    (0, 1, "cuda"),
    (2, 5, "cuda"),
    (3, 4, "cuda"),
    (1, 7, "second"),
)

_WHERE = {
    "cpu": "tensors on the CPU",
    "nowhere": "no argument",
    "cuda": "tensors on a device that is played",
    "second": "a number, then a tensor on a device that is played",
}


def kernels(draw: Draw) -> Iterator[Case]:
    """How long each call takes; the first ones are slow, and one that counts is slower still."""
    for warmup, iterations, where in _PLANS:
        whole = Kind(torch.int64, (warmup + iterations,))
        # between 8 and 1599 ticks, and no two alike
        ticks = (draw.tensor(whole) + 100) * 8 + torch.arange(warmup + iterations)
        ticks[:warmup] += 32768  # slow, as first calls are
        if iterations > 1:
            ticks[warmup] += 8192  # somebody else had the machine
        if iterations > 4:
            # who takes the one in the middle and has not sorted them gets the second fastest: no
            # median, with or without the calls to warm up, and neither the fastest nor the slowest
            row, middle = ticks[warmup:], iterations // 2
            second = int(row.argsort()[1])
            row[[middle, second]] = row[[second, middle]]
        seconds = ticks * _TICK
        yield draw.case(
            f"{warmup} calls to warm up, {iterations} timed, {_WHERE[where]}",
            warmup=warmup,
            iterations=iterations,
            seconds=seconds.tolist(),
            where=where,
        )


def timed(c: Case) -> list[float]:
    """How long each timed call takes, in seconds."""
    return list(c.seconds[c.warmup :])


def median(row: Sequence[float]) -> float:
    """The one in the middle, or the mean of the two."""
    return statistics.median(row)


def mean(row: Sequence[float]) -> float:
    """Their sum, divided by their number."""
    return sum(row) / len(row)


def total(c: Case) -> float:
    """All calls that count."""
    return sum(timed(c))


def answer(c: Case, seconds: float) -> list[dict[str, Any]]:
    """What the rank holds if this is returned, in milliseconds."""
    calls = c.warmup + c.iterations
    return [{"calls of fn": calls, "with its arguments": calls, "result": 1e3 * seconds}] * c.n


def time_in_rank(
    time_kernel: Callable[..., Any], warmup: int, iterations: int, seconds: list[float], where: str
) -> dict[str, Any]:
    """Hand the answer a function that takes exactly so long, on a clock of its own."""
    clock = Clock(lambda: 0.0)
    device = Device(clock, LAUNCH, NOTICE)
    first, second = torch.ones(3), torch.zeros(3)
    arguments: tuple[Any, ...] = (first, second)
    if where == "nowhere":
        arguments = ()
    elif where == "cuda":
        arguments = (on_device(first), on_device(second))
    elif where == "second":
        arguments = (1.5, on_device(first))
    calls = fitting = 0

    def fn(*given: Any) -> None:
        nonlocal calls, fitting
        same = len(given) == len(arguments)
        fitting += same and all(a is b for a, b in zip(given, arguments, strict=True))
        takes = seconds[min(calls, len(seconds) - 1)]
        calls += 1
        if where in ("cuda", "second"):
            device.run(takes)
        else:
            clock.now += takes

    scene = (
        played(time_kernel, device) if where in ("cuda", "second") else without_device(time_kernel)
    )
    with shown_to(time_kernel, clock), scene:
        result = time_kernel(fn, *arguments, warmup=warmup, iterations=iterations)
    return {"calls of fn": calls, "with its arguments": fitting, "result": result}
