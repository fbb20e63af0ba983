"""What one rank does: call, take the time, look at the data; in any process group.

The group is set up already, by whoever: by :mod:`grader.bench.joining`, in a test, in
a notebook's ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from grader.bench.contracts import REDUCING, ROOTED, Buffers, calls, wrong_elements
from grader.bench.plan import Plan
from grader.bench.results import Row
from grader.course.bandwidth import algorithm_bandwidth, bus_bandwidth, share

__all__ = ["measure", "seconds_per_call"]


def measure(
    plan: Plan,
    functions: dict[str, Callable[..., Any]],
    device: torch.device,
    begin: Callable[[str], None] = lambda what: None,
) -> Iterator[Row]:
    """Measure what the plan says; every rank gets the same rows.

    Args:
        plan: what to measure.
        functions: a student's, by name; where there is none, it is torch's own.
        device: where the tensors lie.
        begin: is told what comes next.
    """
    rank, n = dist.get_rank(), dist.get_world_size()
    dtype: torch.dtype = getattr(torch, plan.dtype)
    for name, op in plan.contests:
        done = set()
        for asked in plan.sizes:
            count, nbytes = share(op, asked, dtype.itemsize, n)
            if nbytes in done:
                continue  # the smallest sizes are rounded up to one element a rank
            done.add(nbytes)
            begin(f"{name} of {nbytes} bytes")
            buffers = Buffers.make(op, rank, n, count, dtype, device)
            call = calls(buffers, functions.get(name), name)
            buffers.fill(more=1)
            seconds = seconds_per_call(call, plan.warmup, plan.iterations, device)
            # anew, since in place sums have grown; with other numbers, since a result that is
            # left from the timed calls must not pass for this call's
            buffers.fill()
            held = call()
            wrong = _agreed(wrong_elements(buffers.expected(), held), dist.ReduceOp.SUM, device)
            yield Row(
                name,
                op,
                nbytes,
                count,
                plan.dtype,
                "sum" if op in REDUCING else "none",
                0 if op in ROOTED else -1,
                seconds,
                algorithm_bandwidth(nbytes, seconds),
                bus_bandwidth(op, nbytes, seconds, n),
                int(wrong),
            )


def seconds_per_call(
    call: Callable[[], Any], warmup: int, iterations: int, device: torch.device
) -> float:
    """The slowest rank's mean, the same number on every rank."""
    for _ in range(warmup):
        call()
    _finish(device)
    dist.barrier()
    _finish(device)
    started = time.perf_counter()
    for _ in range(iterations):
        call()
    _finish(device)
    mean = (time.perf_counter() - started) / iterations
    return _agreed(mean, dist.ReduceOp.MAX, device)


def _finish(device: torch.device) -> None:
    """Wait until the device has done what it was told; a CPU has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _agreed(number: float, op: Any, device: torch.device) -> float:
    tensor = torch.tensor(number, dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op=op)
    return float(tensor)
