"""A training step with chapter 15's ``BucketedDDP``, beside torch's own.

The same model in the same four processes on plain gloo, one step with the one and
one step with the other in turns; a step takes as long as its slowest rank, and the
median counts.  How much of the communication overlaps with backward is then read
off the record of a run: the share of the time with an all-reduce in flight that
lies before the last gradient is ready.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.ring import from_chapter
from grader import mark, run
from headcount.trace.lanes import lanes
from headcount.trace.trace import Trace

RANKS = 4

#: Numbers of a layer, layers, rows of a rank's batch, bytes of a bucket.
WIDTH, LAYERS, ROWS, BUCKET = 512, 8, 128, 2 << 20


class TorchDDP(nn.Module):
    """torch's, with the interface of the chapter's."""

    def __init__(self, module: nn.Module, bucket_bytes: int) -> None:
        from torch.nn.parallel import DistributedDataParallel

        super().__init__()
        self.inner = DistributedDataParallel(module, bucket_cap_mb=bucket_bytes / 2**20)

    def forward(self, x: torch.Tensor) -> Any:
        """What the module gives."""
        return self.inner(x)

    def finish_gradient_synchronization(self) -> None:
        """Its last hook has waited already."""


def ours() -> Callable[[nn.Module, int], nn.Module]:
    """The class of the chapter's solution."""
    return from_chapter("BucketedDDP", "15_data_parallel")


def model() -> nn.Module:
    """Equal layers, so that gradients come one after the other."""
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*layers)


def step(wrapped: Any, x: torch.Tensor) -> None:
    """Forward, backward, and until the gradients are averaged."""
    wrapped.zero_grad()
    wrapped(x).square().mean().backward()
    wrapped.finish_gradient_synchronization()


def _rank(rank: int, store: str, steps: int, told: Connection) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    meeting = dist.FileStore(store, RANKS)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=RANKS)
    wrapped = [kind(model(), BUCKET) for kind in (ours(), TorchDDP)]
    x = torch.randn(ROWS, WIDTH)
    seconds: list[list[float]] = [[], []]
    for _ in range(steps + 2):
        for one, taken in zip(wrapped, seconds, strict=True):
            dist.barrier()
            started = time.perf_counter()
            step(one, x)
            mine = torch.tensor(time.perf_counter() - started, dtype=torch.float64)
            dist.all_reduce(mine, op=dist.ReduceOp.MAX)
            taken.append(float(mine))
    if rank == 0:
        told.send([statistics.median(taken[2:]) for taken in seconds])
    dist.barrier()
    dist.destroy_process_group()


def step_seconds(steps: int) -> tuple[float, float]:
    """Seconds of a step with the chapter's, and with torch's."""
    context = multiprocessing.get_context("spawn")
    heard, told = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=_rank, args=(rank, f"{folder}/store", steps, told))
            for rank in range(RANKS)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    if any(process.exitcode for process in ranks):
        raise SystemExit("a rank has failed; its message is above")
    mine, theirs = heard.recv()
    return mine, theirs


def recorded(torchs: bool) -> None:
    """Three steps, of which the last one is looked at."""
    # the class of a loaded submission does not travel: it is loaded in the rank
    kind = TorchDDP if torchs else ours()
    module, x = model(), torch.randn(ROWS, WIDTH)
    for parameter in module.parameters():
        # backward of torch's returns when all has been reduced: its end tells nothing
        parameter.register_post_accumulate_grad_hook(lambda _: mark("gradient"))  # type: ignore[no-untyped-call]
    wrapped = kind(module, BUCKET)
    for number in range(3):
        dist.barrier()
        mark("begin" if number == 2 else "warm-up")
        step(wrapped, x)
    mark("end")


def overlap(trace: Trace) -> float:
    """The share of the time with an all-reduce in flight before the last gradient is ready."""
    shown = lanes(trace).between("begin", "end")
    before = after = 0.0
    for lane in shown.lanes:
        ready = max(mark.time for mark in lane.marks if mark.text == "gradient")
        before += lane.between(0, ready).in_flight
        after += lane.in_flight
    return before / after


def main() -> None:
    """Print both, beside each other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--runs", type=int, default=5, help="recorded runs, of which the median")
    request = parser.parse_args()
    mine, theirs = step_seconds(request.steps)
    shares = [
        statistics.median(
            overlap(run(recorded, RANKS, torchs, seconds=60).trace) for _ in range(request.runs)
        )
        for torchs in (False, True)
    ]
    table = Table(
        title=f"{RANKS} ranks, {LAYERS} layers of {WIDTH}², buckets of {BUCKET >> 20} MiB"
    )
    for name in ("", "ms a step", "overlap with backward"):
        table.add_column(name, justify="left" if not name else "right")
    for name, seconds, share in zip(
        ("BucketedDDP", "torch's"), (mine, theirs), shares, strict=True
    ):
        table.add_row(name, f"{1e3 * seconds:.1f}", f"{share:.0%}")
    table.add_row("ratio", f"{mine / theirs:.2f}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
