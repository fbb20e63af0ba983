"""Ranks on GPUs: how many there can be, found by trying."""

from __future__ import annotations

import torch
import torch.distributed as dist

from grader.core.errors import RequestError, WorldError
from grader.launch.mpiexec import Borrowed
from grader.launch.process_group_handle import Launcher
from grader.launch.processes import ProcessWorld
from grader.launch.world import Job
from grader.submission.submission import Submission

__all__ = ["missing", "nccl_launcher"]

#: Seconds that two ranks on one GPU may take to find out whether they can.
LOOK = 30.0

_GREETING = b"""
import torch, torch.distributed as dist

def greet():
    x = torch.ones(1)
    dist.all_reduce(x)
    return x
"""


def missing() -> str:
    """Why there can be no world on NCCL here; empty if there can."""
    if not dist.is_nccl_available():
        return "this torch is built without NCCL; install one for CUDA"
    if not torch.cuda.device_count():
        return "there is no NVIDIA GPU here"
    return ""


def nccl_launcher(base: Launcher) -> Borrowed:
    """What starts the ranks of worlds on NCCL.

    Args:
        base: what starts their processes; it must not have touched a GPU.

    Raises:
        RequestError: there is no NCCL here; the message says the mend.
    """
    reason = missing()
    if reason:
        raise RequestError(f"no world on NCCL: {reason}")
    count = torch.cuda.device_count()
    return Borrowed(base, "nccl", None if _shares(base, count) else count)


_found: dict[int, bool] = {}


def _shares(base: Launcher, count: int) -> bool:
    """Whether several ranks can have one GPU, which most versions of NCCL refuse."""
    if count not in _found:
        program = Submission.from_bytes(_GREETING, "greeting.py").program
        try:
            with ProcessWorld(Borrowed(base, "nccl"), count + 1, program, loading=LOOK) as world:
                job = Job("greet", ((),) * (count + 1), allowed=None, seconds=LOOK)
                _found[count] = world.run(job).failure is None
        except WorldError:
            _found[count] = False
    return _found[count]
