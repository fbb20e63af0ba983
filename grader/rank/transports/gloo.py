"""gloo: torch's own transport between CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

__all__ = ["BACKEND", "Gloo"]


class Gloo:
    """The gloo backend."""

    name = "gloo"
    coalesces = False
    even_lists = True

    def device(self, rank: int) -> torch.device:
        """Return the CPU."""
        return torch.device("cpu")

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
        return c10d.ProcessGroupGloo(store, rank, size, timeout=limit)


BACKEND = Gloo()
