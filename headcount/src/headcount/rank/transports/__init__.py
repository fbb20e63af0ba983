"""What carries the messages of a world: gloo or NCCL.

Each backend is a module of this package, or of another that brings one; it connects the processes
of a world into a group with the methods of torch's own process groups.  The recording group stands
in front of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

import torch
from torch.distributed import distributed_c10d as c10d

__all__ = ["FOREVER", "Backend", "backend_in"]

#: Longer than any world lives; ranks that can never go on are found from their events instead.
FOREVER = timedelta(hours=12)


class Backend(Protocol):
    """A backend, which connects the processes of a group.

    Attributes:
        name: its name, as in ``init_process_group(name)``.
        coalesces: whether batched point-to-point operations must be handed over as one, between
            ``begin_batch`` and ``end_batch``.
        gloo_tensors: whether its collectives take the tensors that gloo takes, and no others: see
            :func:`headcount.rank.arguments.signatures`.
    """

    name: str
    coalesces: bool
    gloo_tensors: bool

    def device(self, rank: int) -> torch.device:
        """Return the device of a rank's tensors."""
        ...

    def prepare(self, rank: int, size: int) -> None:
        """Do what has to come before this process's first group, in a world of ``size`` ranks."""
        ...

    def connect(
        self,
        store: c10d.Store,
        rank: int,
        size: int,
        members: Sequence[int],
        whole: bool,
        limit: timedelta,
    ) -> Any:
        """Join a group, and return an object with the methods of ``ProcessGroupGloo``.

        Args:
            store: the store through which the members connect.
            rank, size: rank of this process in the group, and number of members.
            members: the global ranks, indexed by rank in the group.
            whole: whether all ranks of the world are members.
            limit: how long to wait for the other members, where the backend can be told.

        Raises:
            RuntimeError: the group cannot be joined.
        """
        ...


def backend_in(module: str) -> Backend:
    """Return the backend of a module, which is imported."""
    backend: Backend = importlib.import_module(module).BACKEND
    return backend
