"""What a message costs on simulated ranks, beside what the student's own code costs.

Two rings over ``dist.isend`` and ``dist.recv``, of one element a chunk: the one
of chapter 11, with all that it has to look at, and one with as little as a ring
needs.  Their floor is the same function in the same process with calls that
only copy: the time of its own tensor operations, which no simulator can save.
It is measured one rank after the other, each with its data in the caches, and
so is lower than what a thousand ranks in turns can reach.

Every number of ranks has a process of its own, so that the memory is its own.
Times are those of the processor, the lowest of the repetitions.  ``python -m benchmarks.simulator``
measures more sizes than ``make bench`` does.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.ring import from_chapter
from grader.simulation.calls import installed
from grader.simulation.clusters import Flat
from grader.simulation.network import ticks_of
from grader.simulation.world import SimulatedWorld

ALPHA, BETA = 1e-6, 1e-10

#: Ranks whose floor is measured; more would only take longer.
FEW = 16

#: Goal for the memory of a simulation of 1,024 ranks, in MB.
LARGEST = 600


def lean_ring(x: torch.Tensor, op: Any) -> None:
    """A ring all-reduce of sums, with as little as it needs."""
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.tensor_split(n)
    came = torch.empty_like(chunks[0])
    for step in range(n - 1):
        request = dist.isend(chunks[(rank - step) % n], right)
        dist.recv(came, left)
        request.wait()
        chunks[(rank - step - 1) % n].add_(came)
    for step in range(n - 1):
        request = dist.isend(chunks[(rank - step + 1) % n], right)
        dist.recv(chunks[(rank - step) % n], left)
        request.wait()


class _Done:
    def wait(self) -> None:
        pass


def _floor(function: Callable[..., Any], n: int) -> float:
    """Seconds a message of the function's own work, and of a copy."""
    here, done, source = [0], _Done(), torch.ones(1)
    calls: dict[str, Callable[..., Any]] = {
        "get_rank": lambda: here[0],
        "get_world_size": lambda: n,
        "isend": lambda tensor, to: done,
        "recv": lambda tensor, of: tensor.copy_(source),
    }
    before = {name: getattr(dist, name) for name in calls}
    best = float("inf")
    try:
        for name, call in calls.items():
            setattr(dist, name, call)
        for here[0] in range(min(n, FEW)):
            x = torch.ones(n)
            started = time.process_time()
            function(x, dist.ReduceOp.SUM)
            best = min(best, time.process_time() - started)
    finally:
        for name, call in before.items():
            setattr(dist, name, call)
    return best / (2 * (n - 1))


def _simulated(function: Callable[..., Any], n: int) -> float:
    """Seconds a message; the result and the virtual time are looked at, too."""
    data = [torch.full((n,), float(rank % 7)) for rank in range(n)]
    world = SimulatedWorld(
        [lambda x=x: function(x, dist.ReduceOp.SUM) for x in data],  # type: ignore[misc]
        Flat(ALPHA, BETA).network(n),
    )
    with installed(world):
        started = time.process_time()
        world.run()
        seconds = time.process_time() - started
    expected = sum(float(rank % 7) for rank in range(n))
    assert all(bool((x == expected).all()) for x in data), "the data is wrong"
    assert world.now == 2 * (n - 1) * (ticks_of(ALPHA) + 4 * ticks_of(BETA)), "the time is wrong"
    return seconds / world.messages


def _measure(name: str, n: int, repetitions: int, answer: Any) -> None:
    torch.set_num_threads(1)
    function = from_chapter("ring_all_reduce") if name == "chapter" else lean_ring
    gc.disable()
    floors, times = [], []
    for _ in range(repetitions):
        floors.append(_floor(function, n))
        times.append(_simulated(function, n))
    answer.send(
        {
            "ring": name,
            "ranks": n,
            "messages": 2 * n * (n - 1),
            "seconds": min(times) * 2 * n * (n - 1),
            "us_per_message": min(times) * 1e6,
            "floor": min(floors) * 1e6,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )


def row(name: str, n: int, repetitions: int) -> dict[str, Any]:
    """What one ring of so many ranks costs, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(name, n, repetitions, theirs))
    process.start()
    theirs.close()
    row: dict[str, Any] = ours.recv()
    process.join()
    return row


def figures(sizes: Sequence[int] = (64, 1024)) -> Iterator[Figure]:
    """Yield what messages of both rings cost beside their floor, and how that grows."""
    for name, goal in (("chapter", 2.0), ("lean", 3.0)):
        costs = {n: row(name, n, 2) for n in sizes}
        for n, cost in costs.items():
            each, floor = cost["us_per_message"], cost["floor"]
            what = f"simulated message, {name} ring, {n:,} ranks"
            yield Figure(what, each, "µs", f"{floor:.2f} µs of its own", each / floor, goal)
        few, many = (costs[n]["us_per_message"] for n in (min(sizes), max(sizes)))
        what = f"simulated message, {name} ring, {max(sizes):,} ranks"
        beside = f"on {min(sizes):,} ranks: {few:.2f} µs"
        yield Figure(what, many, "µs", beside, many / few, 1.3)
        memory = costs[max(sizes)]["megabytes"]
        yield Figure(f"memory of that simulation, {name} ring", memory, "MB", goal=LARGEST)


def main() -> int:
    """Measure and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--ring", nargs="+", choices=["chapter", "lean"], default=["chapter", "lean"]
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = [row(name, n, options.repetitions) for name in options.ring for n in options.ranks]
    if options.json:
        json.dump(measured, sys.stdout, indent=2)
        return 0
    table = Table(
        title="Ring all-reduce on simulated ranks", caption="µs of the processor a message"
    )
    for heading in ("ring", "ranks", "messages", "s", "µs/message", "floor", "times", "MB"):
        table.add_column(heading, justify="left" if heading == "ring" else "right")
    for one in measured:
        table.add_row(
            one["ring"],
            f"{one['ranks']:,}",
            f"{one['messages']:,}",
            f"{one['seconds']:.2f}",
            f"{one['us_per_message']:.2f}",
            f"{one['floor']:.2f}",
            f"{one['us_per_message'] / one['floor']:.2f}",
            f"{one['megabytes']:.0f}",
        )
    Console(width=80).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
