"""Barrier: nobody goes on before everybody has come.  Its messages are empty."""

from __future__ import annotations

import torch

from grader.simulation.algorithms import broadcast, gather
from grader.simulation.communicator import Communicator

__all__ = ["dissemination", "linear"]


def linear(comm: Communicator) -> None:
    """Everybody reports to rank 0, which then lets everybody go."""
    nothing = torch.empty(0, dtype=torch.uint8)
    gather.linear(comm, lambda first, last: nothing)
    broadcast.linear(comm, nothing)


def dissemination(comm: Communicator) -> None:
    """In round k every rank tells the one 2ᵏ after it that it and all it heard of are there.

    (Hensgen, Finkel and Manber 1988, https://doi.org/10.1007/BF01379320.)
    """
    rank, size, distance = comm.rank, comm.size, 1
    nothing = torch.empty(0, dtype=torch.uint8)
    while distance < size:
        comm.exchange(nothing, (rank + distance) % size, nothing, (rank - distance) % size)
        distance *= 2
