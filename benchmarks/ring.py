"""The course's ring all-reduce against gloo's own ``all_reduce``.

Four processes, one message size after the other; the contestants alternate in
the same processes, so that a drift of the machine's speed hits all alike.  A
time is that of the slowest rank, and the median over repetitions is reported,
as bus bandwidth: bytes / seconds · 2(n − 1)/n, the convention of nccl-tests
(https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).

Run with ``make bench``.
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
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from rich.console import Console
from rich.table import Table

from benchmarks.engine import RANKS, loopback
from grader.course.chapters import discover
from grader.submission.submission import Submission
from headcount.core.program import load

SOLUTIONS = Path(__file__).resolve().parent.parent / "solutions"

MIB = 1 << 20


def from_chapter(name: str, chapter: str = "11_ring_all_reduce") -> Callable[..., Any]:
    """A function or class of a solved chapter, its own helpers included."""
    submission = Submission.from_file(SOLUTIONS / f"{chapter}.py", discover())
    function: Callable[..., Any] = load(submission.program).entry(name)
    return function


def _slowest(seconds: float) -> float:
    worst = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return float(worst)


def _rank(rank: int, folder: str, sizes: list[int], repetitions: int) -> None:
    loopback()
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", RANKS)
    dist.init_process_group(
        "gloo", rank=rank, world_size=RANKS, store=store, timeout=timedelta(minutes=2)
    )
    ring, pipelined = from_chapter("ring_all_reduce"), from_chapter("pipelined_ring_sum")
    contestants: dict[str, Callable[[torch.Tensor], Any]] = {
        "gloo": dist.all_reduce,
        "chapter": lambda x: ring(x, dist.ReduceOp.SUM),
        "pipelined": pipelined,
    }
    found: dict[str, dict[str, float]] = {}
    for nbytes in sizes:
        x = torch.zeros(nbytes // 4)
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for turn in range(repetitions + 1):
            for name, all_reduce in contestants.items():
                x.fill_(rank)
                dist.barrier()
                started = time.perf_counter()
                all_reduce(x)
                seconds = _slowest(time.perf_counter() - started)
                assert bool((x == sum(range(RANKS))).all()), name
                if turn:  # the first warms up
                    times[name].append(seconds)
        found[str(nbytes)] = {name: statistics.median(t) for name, t in times.items()}
    if rank == 0:
        Path(folder, "times.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def main() -> int:
    """Print a table of bus bandwidths and their ratios to gloo's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", default="1,4,16,64,256", help="sizes in MiB")
    parser.add_argument("--repetitions", type=int, default=7)
    request = parser.parse_args()
    sizes = [int(float(size) * MIB) for size in request.mib.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, (folder, sizes, request.repetitions), nprocs=RANKS)  # type: ignore[no-untyped-call]
        found = json.loads(Path(folder, "times.json").read_text())
    table = Table(title=f"ring all-reduce on {RANKS} ranks, bus bandwidth in GB/s", box=None)
    for heading in ("MiB", "gloo", "chapter 11", "ratio", "pipelined", "ratio"):
        table.add_column(heading, justify="right")
    for nbytes, times in found.items():
        bandwidth = {
            name: int(nbytes) / seconds * 2 * (RANKS - 1) / RANKS / 1e9
            for name, seconds in times.items()
        }
        gloo = bandwidth["gloo"]
        table.add_row(
            f"{int(nbytes) / MIB:g}",
            f"{gloo:.2f}",
            f"{bandwidth['chapter']:.2f}",
            f"{bandwidth['chapter'] / gloo:.2f}",
            f"{bandwidth['pipelined']:.2f}",
            f"{bandwidth['pipelined'] / gloo:.2f}",
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
