"""Reduce-scatter: block r of rank r becomes the reduction of all ranks' blocks r.

The other blocks are used up.
"""

from __future__ import annotations

import torch

from grader.simulation.algorithms.blocks import Blocks
from grader.simulation.algorithms.folding import Folding, halve
from grader.simulation.algorithms.reductions import Combine
from grader.simulation.communicator import Communicator

__all__ = ["pairwise", "recursive_halving", "ring"]


def ring(comm: Communicator, blocks: Blocks, combine: Combine) -> None:
    """In each of n − 1 steps, every rank adds its own to what it got, and hands it on.

    (Bucket reduce-scatter, Chan et al. 2007.)
    """
    rank, size = comm.rank, comm.size
    after, before = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        mine = blocks[(rank - step - 2) % size]
        arriving = torch.empty_like(mine)
        comm.exchange(blocks[(rank - step - 1) % size], after, arriving, before)
        combine(mine, arriving)


def pairwise(comm: Communicator, blocks: Blocks, combine: Combine) -> None:
    """In step k every rank sends to the k-th after it the block that this one needs.

    (Thakur, Rabenseifner and Gropp 2005.)
    """
    rank, size = comm.rank, comm.size
    mine = blocks[rank]
    arriving = torch.empty_like(mine)
    for step in range(1, size):
        to = (rank + step) % size
        comm.exchange(blocks[to], to, arriving, (rank - step) % size)
        combine(mine, arriving)


def recursive_halving(comm: Communicator, blocks: Blocks, combine: Combine) -> None:
    """Pairs at distance P/2, P/4, … 1 exchange the halves that the other needs.

    (Thakur, Rabenseifner and Gropp 2005; folded where n is no power of two.)
    """
    folding = Folding(comm)
    if folding.aside:
        comm.send(blocks.flat, folding.partner)
        comm.recv(blocks[comm.rank], folding.partner)
        return
    if folding.partner >= 0:
        arriving = torch.empty_like(blocks.flat)
        comm.recv(arriving, folding.partner)
        combine(blocks.flat, arriving)
    halve(comm, folding, folding.blocks(blocks), combine)
    if folding.partner >= 0:
        comm.send(blocks[folding.partner], folding.partner)
