"""Broadcast: from rank 0 of the communicator to all.  S is the size of the tensor."""

from __future__ import annotations

import torch

from grader.simulation.algorithms import all_gather, scatter, trees
from grader.simulation.algorithms.blocks import even
from grader.simulation.communicator import Communicator, wait_all

__all__ = ["SEGMENT", "binomial_tree", "chain", "linear", "scatter_allgather"]

#: Bytes of what travels down a chain at a time.
SEGMENT = 1 << 16


def linear(comm: Communicator, tensor: torch.Tensor) -> None:
    """The root sends to one rank after the other."""
    if comm.rank:
        comm.recv(tensor, 0)
    else:
        wait_all([comm.isend(tensor, rank) for rank in range(1, comm.size)])


def chain(comm: Communicator, tensor: torch.Tensor) -> None:
    """Every rank hands on to the next, one segment while the following arrives.

    (The pipeline of Pješivac-Grbović et al. 2007.)
    """
    elements = max(1, SEGMENT // tensor.element_size())
    pending = []
    for segment in torch.split(tensor, elements):
        if comm.rank:
            comm.recv(segment, comm.rank - 1)
        if comm.rank + 1 < comm.size:
            pending.append(comm.isend(segment, comm.rank + 1))
    wait_all(pending)


def binomial_tree(comm: Communicator, tensor: torch.Tensor) -> None:
    """In every round, each rank that has the tensor sends it to one that has not.

    (Minimum spanning tree broadcast, Chan et al. 2007.)
    """
    if comm.rank:
        comm.recv(tensor, trees.parent(comm))
    for child, _ in trees.children(comm):
        comm.send(tensor, child)


def scatter_allgather(comm: Communicator, tensor: torch.Tensor) -> None:
    """A scatter on a binomial tree, and an all-gather on a ring.

    (Van de Geijn's algorithm for long messages, in Thakur, Rabenseifner and Gropp 2005.)
    """
    blocks = even(tensor, comm.size)
    scatter.binomial_tree(comm, blocks.span)
    all_gather.ring(comm, blocks)
