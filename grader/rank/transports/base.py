"""What a backend is."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

import torch
from torch.distributed import distributed_c10d as c10d

__all__ = ["FOREVER", "Backend", "named"]

#: Nobody waits this long: who can never go on is found from the record.
FOREVER = timedelta(hours=12)


class Backend(Protocol):
    """Connects processes.

    Attributes:
        name: as in ``init_process_group(name)``.
        coalesces: whether point-to-point operations must be handed over as one
            where they are batched, between ``begin_batch`` and ``end_batch``.
        even_lists: whether the tensors in a list of a gather, a scatter or an all-to-all
            must have one size.
    """

    name: str
    coalesces: bool
    even_lists: bool

    def device(self, rank: int) -> torch.device:
        """Where a rank's tensors live."""
        ...

    def connect(
        self, store: c10d.Store, rank: int, size: int, members: Sequence[int], whole: bool
    ) -> Any:
        """Join a group; what it gives has the methods of ``ProcessGroupGloo``.

        Args:
            store: where its members meet.
            rank, size: of this process in the group.
            members: global ranks, by rank in the group.
            whole: whether all ranks of the world are in it.

        Raises:
            RuntimeError: it cannot be joined.
        """
        ...


def named(name: str) -> Backend:
    """Return the backend whose transport is the module of this name."""
    backend: Backend = importlib.import_module(f"grader.rank.transports.{name}").BACKEND
    return backend
