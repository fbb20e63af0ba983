"""What a message costs on simulated ranks, beside ranks that take turns without a simulator.

Two rings over ``dist.isend`` and ``dist.recv``, of one element a chunk: the one
of chapter 11, with all that it has to look at, and one with as little as a ring
needs.  Their floor is the same function on as many greenlets that run round and
round, where a send leaves its tensor in the receiver's box and a receive copies
what lies there: no clock, no matching, no checks.  It holds the same tensors, and
moves as much through the caches, which no simulator can save.

Every measurement has a process of its own, so that the memory is its own.
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
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from ctypes import memmove
from typing import Any

import greenlet
import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.ring import from_chapter
from headcount.simulation.calls import installed
from headcount.simulation.clusters import Flat
from headcount.simulation.network import ticks_of
from headcount.simulation.world import SimulatedWorld

ALPHA, BETA = 1e-6, 1e-10

#: Goals, as multiples of the floor: for the time of a message of each ring, for how much it grows
#: with the number of ranks, and for the memory.
TIMES = {"chapter": 2.0, "lean": 2.5}
GROWTH, MEMORY = 1.0, 1.1


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


def _in_turn(function: Callable[..., Any], n: int) -> float:
    """Seconds a message of ranks that run in turn, without a simulator."""
    data, here, done = _data(n), 0, _Done()
    boxes: list[deque[torch.Tensor]] = [deque() for _ in range(n)]
    main, started = greenlet.getcurrent(), False

    def live(rank: int) -> None:
        function(data[rank], dist.ReduceOp.SUM)

    greens = [greenlet.greenlet(live, main) for _ in range(n)]

    def isend(tensor: torch.Tensor, to: int) -> _Done:
        boxes[to].append(tensor)
        return done

    def recv(tensor: torch.Tensor, of: int) -> None:
        nonlocal here
        me = here
        if started:
            here = me + 1 if me + 1 < n else 0
            greens[here].switch()
        else:
            main.switch()  # a rank that is started by another one would have to keep its stack
        theirs = boxes[me].popleft()
        memmove(tensor.data_ptr(), theirs.data_ptr(), theirs.nbytes)

    calls: dict[str, Callable[..., Any]] = {
        "get_rank": lambda: here,
        "get_world_size": lambda: n,
        "isend": isend,
        "recv": recv,
    }
    before = {name: getattr(dist, name) for name in calls}
    try:
        for name, call in calls.items():
            setattr(dist, name, call)
        begun = time.process_time()
        for rank, green in enumerate(greens):
            here = rank
            green.switch(rank)
        started = True
        for rank, green in enumerate(greens):  # each ends once the one before it has ended
            here = rank
            green.switch()
        seconds = time.process_time() - begun
    finally:
        for name, call in before.items():
            setattr(dist, name, call)
    _require_sums(data)
    return seconds / (2 * n * (n - 1))


def _data(n: int) -> list[torch.Tensor]:
    return [torch.full((n,), float(rank % 7)) for rank in range(n)]


def _require_sums(data: list[torch.Tensor]) -> None:
    expected = sum(float(rank % 7) for rank in range(len(data)))
    assert all(bool((x == expected).all()) for x in data), "the data is wrong"


def _simulated(function: Callable[..., Any], n: int) -> float:
    """Seconds a message; the result and the virtual time are looked at, too."""
    data = _data(n)
    world = SimulatedWorld(
        [lambda x=x: function(x, dist.ReduceOp.SUM) for x in data],  # type: ignore[misc]
        Flat(ALPHA, BETA).network(n),
    )
    with installed(world):
        started = time.process_time()
        world.run()
        seconds = time.process_time() - started
    _require_sums(data)
    assert world.now == 2 * (n - 1) * (ticks_of(ALPHA) + 4 * ticks_of(BETA)), "the time is wrong"
    return seconds / world.messages


#: How ranks are run.
_WAYS = {"simulated": _simulated, "in turn": _in_turn}


def _measure(name: str, n: int, repetitions: int, way: str, answer: Any) -> None:
    torch.set_num_threads(1)
    function = from_chapter("ring_all_reduce") if name == "chapter" else lean_ring
    gc.disable()
    seconds = min(_WAYS[way](function, n) for _ in range(repetitions))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer.send((seconds * 1e6, largest / 1024))


def _cost(name: str, n: int, repetitions: int, way: str) -> tuple[float, float]:
    """Microseconds a message, and megabytes, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(name, n, repetitions, way, theirs))
    process.start()
    theirs.close()
    cost: tuple[float, float] = ours.recv()
    process.join()
    return cost


def row(name: str, n: int, repetitions: int) -> dict[str, Any]:
    """What one ring of so many ranks costs, simulated and in turn."""
    floor, least = _cost(name, n, repetitions, "in turn")
    each, memory = _cost(name, n, repetitions, "simulated")
    return {
        "ring": name,
        "ranks": n,
        "messages": 2 * n * (n - 1),
        "seconds": each * 2 * n * (n - 1) / 1e6,
        "us_per_message": each,
        "floor": floor,
        "megabytes": memory,
        "least": least,
    }


def figures(sizes: Sequence[int] = (64, 1024)) -> Iterator[Figure]:
    """Yield what messages of both rings cost beside their floor, and how that grows."""
    for name, goal in TIMES.items():
        costs = {n: row(name, n, 2) for n in sizes}
        for n, cost in costs.items():
            each, floor = cost["us_per_message"], cost["floor"]
            what = f"simulated message, {name} ring, {n:,} ranks"
            yield Figure(what, each, "µs", f"{floor:.2f} µs in turn", each / floor, goal)
        few, many = costs[min(sizes)], costs[max(sizes)]
        ours, bare = (many[key] / few[key] for key in ("us_per_message", "floor"))
        what = f"growth from {min(sizes):,} to {max(sizes):,} ranks, {name} ring"
        yield Figure(what, ours, "times", f"{bare:.2f} times in turn", ours / bare, GROWTH)
        memory, least = many["megabytes"], many["least"]
        what = f"memory of {max(sizes):,} ranks, {name} ring"
        yield Figure(what, memory, "MB", f"{least:,.0f} MB in turn", memory / least, MEMORY)


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
    headings = ("ring", "ranks", "messages", "s", "µs/message", "in turn", "times", "MB", "in turn")
    for heading in headings:
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
            f"{one['least']:.0f}",
        )
    Console(width=80).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
