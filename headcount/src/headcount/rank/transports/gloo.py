"""gloo: torch's own transport between CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

__all__ = ["BACKEND", "Gloo"]


class Gloo:
    """The gloo backend.

    All groups of a process share its devices, which listen on the network and have a thread each.
    So a rank needs no right to listen when it makes a subgroup.
    """

    name = "gloo"
    coalesces = False
    gloo_tensors = True

    def __init__(self) -> None:
        self._devices: list[Any] = []

    def device(self, rank: int) -> torch.device:
        """Return the CPU."""
        return torch.device("cpu")

    def prepare(self, rank: int, size: int) -> None:
        """Do nothing."""

    def connect(
        self,
        store: c10d.Store,
        rank: int,
        size: int,
        members: Sequence[int],
        whole: bool,
        limit: timedelta,
    ) -> Any:
        """Return a gloo group."""
        if not self._devices:
            group = c10d.ProcessGroupGloo(store, rank, size, timeout=limit)
            self._devices = group.options._devices  # type: ignore[attr-defined]
            return group
        options = c10d.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._devices, options._timeout = self._devices, limit
        return c10d.ProcessGroupGloo(store, rank, size, options)


BACKEND = Gloo()
