"""All-gather: every rank has its own block in place, and gets those of the others."""

from __future__ import annotations

import torch

from grader.simulation.algorithms.blocks import Blocks
from grader.simulation.algorithms.folding import Folding, double
from grader.simulation.communicator import Communicator

__all__ = ["bruck", "recursive_doubling", "ring"]


def ring(comm: Communicator, blocks: Blocks) -> None:
    """In each of n − 1 steps, every rank hands to the next what it got in the last.

    (Bucket all-gather, Chan et al. 2007.)
    """
    rank, size = comm.rank, comm.size
    after, before = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        outgoing, incoming = (rank - step) % size, (rank - step - 1) % size
        comm.exchange(blocks[outgoing], after, blocks[incoming], before)


def recursive_doubling(comm: Communicator, blocks: Blocks) -> None:
    """Pairs at distance 1, 2, 4, … exchange all they have.

    (Thakur, Rabenseifner and Gropp 2005; folded where n is no power of two.)
    """
    folding = Folding(comm)
    if folding.aside:
        comm.send(blocks[comm.rank], folding.partner)
        comm.recv(blocks.flat, folding.partner)
        return
    if folding.partner >= 0:
        comm.recv(blocks[folding.partner], folding.partner)
    double(comm, folding, folding.blocks(blocks))
    if folding.partner >= 0:
        comm.send(blocks.flat, folding.partner)


def bruck(comm: Communicator, blocks: Blocks) -> None:
    """⌈log₂ n⌉ rounds at every n: rank r collects the blocks r, r + 1, … in this order.

    All blocks have to be of one size.  (Bruck, Ho, Kipnis, Upfal and Weathersby 1997.)
    """
    rank, size = comm.rank, comm.size
    if size == 1:
        return
    flat, per = blocks.flat, blocks.flat.numel() // size
    turned = torch.empty_like(flat)
    turned[:per] = blocks[rank]
    have = 1
    while have < size:
        more = min(have, size - have)
        comm.exchange(
            turned[: more * per],
            (rank - have) % size,
            turned[have * per : (have + more) * per],
            (rank + have) % size,
        )
        have += more
    wrap = (size - rank) * per
    flat[rank * per :] = turned[:wrap]
    flat[: rank * per] = turned[wrap:]
