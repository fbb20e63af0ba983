"""Hidden tests as an instructor writes them by hand: ``torch.multiprocessing.spawn``, and compare.

This file stands alone.  :mod:`benchmarks.graders.tools` puts it beside the notebooks
of nbgrader and Otter, whose hidden tests call :func:`examine`.
"""

import os
import tempfile
import time
from datetime import timedelta

import cloudpickle
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLDS = (2, 3, 4)

#: Seconds that a world may take.
LIMIT = 60


def inputs(name, rank, size):
    """The calls of one rank: each a tuple of arguments."""
    if name == "broadcast":
        return [(torch.arange(5) + 100 * rank, src) for src in (0, size - 1)]
    if name == "ring_all_gather":
        return [(torch.arange(4) + 10 * rank,), (torch.ones(2, 3) * rank,)]
    ops = (dist.ReduceOp.SUM, dist.ReduceOp.MAX)
    return [(torch.arange(7.0) + rank, op) for op in ops]


def expected(name, rank, size):
    """What each of these calls must leave or return."""
    everyone = [inputs(name, other, size) for other in range(size)]
    if name == "broadcast":
        return [everyone[0][0][0], everyone[size - 1][1][0]]
    if name == "ring_all_gather":
        return [[calls[i][0] for calls in everyone] for i in range(2)]
    stacked = torch.stack([calls[0][0] for calls in everyone])
    return [stacked.sum(0), stacked.max(0).values]


def _rank(rank, size, folder, name, packed):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=LIMIT),
    )
    function = cloudpickle.loads(packed)
    found = []
    for arguments in inputs(name, rank, size):
        returned = function(*arguments)
        found.append(arguments[0] if returned is None else returned)
    torch.save(found, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def _same(one, other):
    if isinstance(other, list):
        pairs = zip(one, other, strict=True)
        return isinstance(one, list) and all(_same(a, b) for a, b in pairs)
    return one.shape == other.shape and torch.allclose(one, other)


def examine(function):
    """Run a student's function on every world; raises if it is wrong, fails, or takes too long."""
    name, packed = getattr(function, "__name__", "the answer"), cloudpickle.dumps(function)
    for size in WORLDS:
        with tempfile.TemporaryDirectory() as folder:
            ends = time.monotonic() + LIMIT
            world = mp.spawn(_rank, (size, folder, name, packed), nprocs=size, join=False)
            while not world.join(timeout=max(0.0, ends - time.monotonic())):
                if time.monotonic() >= ends:
                    for process in world.processes:
                        process.kill()
                        process.join()
                    raise TimeoutError(f"{name}: no answer on {size} ranks after {LIMIT} s")
            for rank in range(size):
                found = torch.load(f"{folder}/{rank}.pt")
                for got, right in zip(found, expected(name, rank, size), strict=True):
                    assert _same(got, right), f"{name}, rank {rank} of {size}: {got}, not {right}"
