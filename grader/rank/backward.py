"""Waits in C++ at the end of a backward pass, made visible.

The reducer of torch's ``DistributedDataParallel`` begins collectives during a backward pass.  It
waits for their futures in C++, in a callback that the autograd engine runs when the gradients are
there.  The engine runs its callbacks in the order in which they were added, and the reducer adds
its own after it has begun the last collective.  So a callback that is added as each one begins
waits just before the reducer would, for the same, and in Python, where the wait is reported.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

__all__ = ["called_by_engine", "report_comm_hooks", "wait_when_backward_ends"]

#: The function from which Python enters the autograd engine.
_ENTRY = torch.autograd.graph._engine_run_backward.__code__


def called_by_engine(frame: FrameType) -> bool:
    """Return whether a function, whose frame is given, was called from C++ in a backward pass."""
    return frame.f_back is not None and frame.f_back.f_code is _ENTRY


def wait_when_backward_ends(wait: Callable[[], None]) -> None:
    """Call ``wait`` when the backward pass of this thread has computed all gradients.

    A pass inside another one, as of a reentrant checkpoint, may end long before the reducer waits;
    nothing is added to it, so that no rank waits earlier than it would.  Outside of a backward
    pass, where ``Join`` calls a hook, whoever called waits by itself.
    """
    if _passes() == 1:
        torch.autograd.Variable._execution_engine.queue_callback(wait)


def _passes() -> int:
    """Return the number of backward passes that this thread is in, one inside the other."""
    entries = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        entries += frame.f_code is _ENTRY
        frame = frame.f_back
    return entries


def report_comm_hooks() -> None:
    """Let this process report the waits for the futures that DDP's communication hooks return."""
    module: Any = dist
    register = module._register_comm_hook

    def register_comm_hook(reducer: Any, state: Any, hook: Callable[..., Any]) -> None:
        @functools.wraps(hook)
        def reported(state: Any, bucket: Any) -> Any:
            future = hook(state, bucket)
            if isinstance(future, Future):
                wait_when_backward_ends(functools.partial(_wait, future))
            return future

        register(reducer, state, reported)

    module._register_comm_hook = register_comm_hook
    # torch's hooks in C++ read values in C++ from a future, and ours holds objects of Python; its
    # hooks in Python do the same
    DistributedDataParallel._register_builtin_comm_hook = _register_builtin_comm_hook  # type: ignore[method-assign]


def _wait(future: Future[Any]) -> None:
    future.wait()


def _register_builtin_comm_hook(ddp: DistributedDataParallel, kind: Any) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    hooks = {
        "ALLREDUCE": default_hooks.allreduce_hook,
        "FP16_COMPRESS": default_hooks.fp16_compress_hook,
    }
    ddp.register_comm_hook(ddp.process_group, hooks[kind.name])
