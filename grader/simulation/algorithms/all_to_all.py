"""All-to-all: block j of rank i goes to rank j, as block i.  All blocks are flat tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.simulation.communicator import Communicator, wait_all

__all__ = ["bruck", "linear", "pairwise"]

#: One block for every rank.
Tensors = Sequence[torch.Tensor]


def linear(comm: Communicator, received: Tensors, sent: Tensors) -> None:
    """Every rank begins all its messages at once, the next rank's first."""
    rank, size = comm.rank, comm.size
    received[rank].copy_(sent[rank])
    requests = [
        comm.irecv(received[(rank - step) % size], (rank - step) % size) for step in range(1, size)
    ]
    requests += [
        comm.isend(sent[(rank + step) % size], (rank + step) % size) for step in range(1, size)
    ]
    wait_all(requests)


def pairwise(comm: Communicator, received: Tensors, sent: Tensors) -> None:
    """In step k every rank sends to the k-th after it, and receives from the k-th before.

    (Thakur, Rabenseifner and Gropp 2005.)
    """
    rank, size = comm.rank, comm.size
    received[rank].copy_(sent[rank])
    for step in range(1, size):
        to, source = (rank + step) % size, (rank - step) % size
        comm.exchange(sent[to], to, received[source], source)


def bruck(comm: Communicator, received: Tensors, sent: Tensors) -> None:
    """⌈log₂ n⌉ rounds: in the k-th, blocks whose way has bit k go 2ᵏ ranks on.

    All blocks have to be of one size; see :data:`grader.simulation.algorithms.catalogue.UNEVEN`.
    (Bruck, Ho, Kipnis, Upfal and Weathersby 1997.)
    """
    rank, size = comm.rank, comm.size
    #: by how far they have to go
    blocks = [sent[(rank + way) % size] for way in range(size)]
    distance = 1
    while distance < size:
        ways = [way for way in range(size) if way & distance]
        outgoing = torch.cat([blocks[way] for way in ways])
        incoming = torch.empty_like(outgoing)
        comm.exchange(outgoing, (rank + distance) % size, incoming, (rank - distance) % size)
        for way, block in zip(ways, incoming.tensor_split(len(ways)), strict=True):
            blocks[way] = block
        distance *= 2
    for way, block in enumerate(blocks):
        received[(rank - way) % size].copy_(block)
