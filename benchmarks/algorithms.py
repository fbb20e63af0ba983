"""The collectives of chapter 20 beside the ring, the tree and torch's own, on gloo.

Eight real ranks and 512 simulated ones, at 1 KiB, 1 MiB and 64 MiB: messages, rounds, the time
in the alpha-beta model, and on real ranks the time on the clock, of the slowest rank, as the median
of the turns; the contestants alternate in the same processes.  On a machine with fewer cores than
ranks that time says more of the machine than of the algorithm.

Simulated ranks hold a part of the bytes, each of which costs as many times more: no message takes
another time for that, and 512 tensors of 64 MiB need no memory.  Run it as
``python -m benchmarks.algorithms``; let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from rich.console import Console
from rich.table import Table

from benchmarks.engine import loopback
from benchmarks.ring import from_chapter
from grader import simulate
from headcount.core.verdict import amount, duration

#: Numbers of ranks: real ones, and simulated ones.
REAL, MANY = 8, 512

SIZES = (1 << 10, 1 << 20, 64 << 20)

#: The network of the model: 10 µs a message, and 25 GB/s.
ALPHA, BETA = 10e-6, 1 / 25e9

#: The most bytes that a simulated rank holds.
HELD = 1 << 16

_CHAPTER = "20_tree_algorithms"

#: What reduces or broadcasts x in place, on the ranks that call it.
Collective = Callable[[torch.Tensor], Any]


def _loaded(name: str, chapter: str) -> Callable[..., Any]:
    """Return a function of a solved chapter that can be sent to simulated ranks by value."""
    function = from_chapter(name, chapter)
    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


def all_reduces() -> dict[str, Collective]:
    """Return the all-reduces of the course, by name."""
    found = {
        "ring": _loaded("ring_all_reduce", "11_ring_all_reduce"),
        "recursive doubling": _loaded("recursive_doubling_all_reduce", _CHAPTER),
        "halving, doubling": _loaded("halving_doubling_all_reduce", _CHAPTER),
    }
    return {name: partial(_reduced, run) for name, run in found.items()}


def _reduced(run: Callable[..., Any], x: torch.Tensor) -> None:
    run(x, dist.ReduceOp.SUM)


def broadcasts(n: int, nbytes: int) -> dict[str, Collective]:
    """Return the broadcasts of the course, by name, with the pieces that suit a size."""
    chapter = partial(_loaded, chapter=_CHAPTER)
    pieces = chapter("best_pieces")(n, nbytes, ALPHA, BETA)
    # as on a chain, where a first piece passes about two rounds for each level of a tree
    levels = 2 * (n - 1).bit_length()
    halves = max(1, chapter("best_pieces")(levels + 2, nbytes, ALPHA, BETA) // 2)
    parents = chapter("parents_below_source")(n, chapter("double_trees")(n - 1))
    program = chapter("tree_program")(parents, chapter("first_rounds")(parents), halves)
    return {
        "binomial tree": partial(_from_zero, _loaded("tree_broadcast", "02_broadcast")),
        f"chain, k = {pieces}": partial(_in_pieces, chapter("pipelined_broadcast"), pieces),
        "scatter, all-gather": partial(_from_zero, chapter("scatter_all_gather_broadcast")),
        f"two trees, k = {halves}": partial(
            _on_trees, chapter("broadcast_on_trees"), program, halves
        ),
    }


def _from_zero(run: Callable[..., Any], x: torch.Tensor) -> None:
    run(x, 0)


def _in_pieces(run: Callable[..., Any], pieces: int, x: torch.Tensor) -> None:
    run(x, 0, pieces)


def _on_trees(run: Callable[..., Any], program: Any, pieces: int, x: torch.Tensor) -> None:
    run(x, program, 2, pieces)


def _modelled(run: Collective, reduces: bool, elements: int) -> bool:
    """Run a collective on a simulated rank, and say whether the rank holds what it should."""
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((elements,), float(rank))
    run(x)
    return bool((x == (n * (n - 1) // 2 if reduces else 0)).all())


def modelled(run: Collective, reduces: bool, n: int, nbytes: int) -> tuple[int, int, float]:
    """Return the messages, the rounds and the seconds of a collective on simulated ranks."""
    shrink = max(1, nbytes // HELD)
    elements = nbytes // 4 // shrink
    timed, counted = (
        simulate(_modelled, n, run, reduces, elements, alpha=alpha, beta=beta, seconds=600)
        # where a message takes a second however long it is, seconds are rounds
        for alpha, beta in ((ALPHA, BETA * shrink), (1, 0))
    )
    if not all([*timed, *counted]):
        raise RuntimeError(f"{run} is wrong on {n} simulated ranks")
    return timed.messages, round(counted.seconds), timed.seconds


def _rank(rank: int, folder: str, turns: int) -> None:
    loopback()
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", REAL)
    dist.init_process_group(
        "gloo", rank=rank, world_size=REAL, store=store, timeout=timedelta(minutes=5)
    )
    found: dict[str, dict[str, float]] = {}
    for nbytes in SIZES:
        x = torch.zeros(nbytes // 4)
        reducing = {**all_reduces(), "dist.all_reduce": dist.all_reduce}
        sending = {
            **broadcasts(REAL, nbytes),
            "dist.broadcast": partial(_from_zero, dist.broadcast),
        }
        times: dict[str, list[float]] = {name: [] for name in (*reducing, *sending)}
        for turn in range(turns + 1):
            for name, run in (*reducing.items(), *sending.items()):
                x.fill_(rank)
                dist.barrier()
                started = time.perf_counter()
                run(x)
                seconds = torch.tensor([time.perf_counter() - started], dtype=torch.float64)
                dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
                expected = sum(range(REAL)) if name in reducing else 0
                assert bool((x == expected).all()), name
                if turn:  # the first warms up
                    times[name].append(float(seconds))
        found[str(nbytes)] = {name: statistics.median(t) for name, t in times.items()}
    if rank == 0:
        Path(folder, "times.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def measured(turns: int) -> dict[str, dict[str, float]]:
    """Return the median seconds on real ranks, by size and name."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, (folder, turns), nprocs=REAL)  # type: ignore[no-untyped-call]
        times: dict[str, dict[str, float]] = json.loads(Path(folder, "times.json").read_text())
    return times


def main() -> int:
    """Print a table for each collective."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=7, help="on real ranks, after one to warm up")
    parser.add_argument("--simulated", type=int, default=MANY, help="number of simulated ranks")
    request = parser.parse_args()
    times, console = measured(request.turns), Console(highlight=False, width=110)
    for reduces, title in ((True, "all-reduce"), (False, "broadcast")):
        for n in (REAL, request.simulated):
            real = n == REAL
            table = Table(title=f"{title} on {n} {'' if real else 'simulated '}ranks", box=None)
            for heading in ("size", "algorithm", "messages", "rounds", "model", "clock"):
                left = heading in ("size", "algorithm")
                table.add_column(heading, justify="left" if left else "right")
            for nbytes in SIZES:
                runs = all_reduces() if reduces else broadcasts(n, nbytes)
                for name, run in runs.items():
                    sent, rounds, seconds = modelled(run, reduces, n, nbytes)
                    clock = duration(times[str(nbytes)][name]) if real else ""
                    table.add_row(
                        amount(nbytes), name, f"{sent:,}", f"{rounds:,}", duration(seconds), clock
                    )
                if real:
                    own = "dist.all_reduce" if reduces else "dist.broadcast"
                    clock = duration(times[str(nbytes)][own])
                    table.add_row(amount(nbytes), own, "", "", "", clock)
                table.add_section()
            console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
