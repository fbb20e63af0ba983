"""All-to-all: block j of rank i goes to rank j, as block i.

Blocks are flat tensors, in a list or in one tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from grader.simulation.algorithms.blocks import Blocks
from grader.simulation.communicator import Communicator, wait_all

__all__ = ["bruck", "linear", "pairwise"]

#: One block for every rank.
Tensors = Sequence[torch.Tensor] | Blocks


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


def bruck(comm: Communicator, received: Blocks, sent: Blocks) -> None:
    """⌈log₂ n⌉ rounds: in the k-th, blocks whose way has bit k go 2ᵏ ranks on.

    All blocks have to be of one size; see :data:`grader.simulation.algorithms.catalogue.UNEVEN`.
    (Bruck, Ho, Kipnis, Upfal and Weathersby 1997.)
    """
    rank, size = comm.rank, comm.size
    shape = size, sent.flat.numel() // size
    #: in row w what has w ranks to go
    rows = sent.flat.view(shape).roll(-rank, 0)
    distance = 1
    while distance < size:
        ways = _with_bit(size, distance)
        outgoing = rows[ways]
        incoming = torch.empty_like(outgoing)
        comm.exchange(outgoing, (rank + distance) % size, incoming, (rank - distance) % size)
        rows[ways] = incoming
        distance *= 2
    # what has come w ranks far is from rank r − w
    received.flat.view(shape).copy_(rows.flip(0).roll(rank + 1, 0))


@functools.lru_cache(maxsize=64)
def _with_bit(size: int, bit: int) -> torch.Tensor:
    """The numbers below ``size`` that have a bit."""
    numbers = torch.arange(size)
    return numbers[(numbers & bit) > 0]
