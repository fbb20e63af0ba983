"""Scatter: rank r of the communicator gets block r of rank 0's.

The blocks are asked for by a function, since a rank needs those of its subtree and no
others: ``span(a, b)`` is a flat tensor of the blocks a to b − 1.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.simulation.algorithms import trees
from grader.simulation.communicator import Communicator, wait_all

__all__ = ["Span", "binomial_tree", "linear"]

#: Consecutive blocks, as one tensor.
Span = Callable[[int, int], torch.Tensor]


def linear(comm: Communicator, span: Span) -> None:
    """The root sends to one rank after the other."""
    if comm.rank:
        comm.recv(span(comm.rank, comm.rank + 1), 0)
    else:
        wait_all([comm.isend(span(rank, rank + 1), rank) for rank in range(1, comm.size)])


def binomial_tree(comm: Communicator, span: Span) -> None:
    """Every rank gets the blocks of its subtree, and hands on all but its own.

    (Minimum spanning tree scatter, Chan et al. 2007.)
    """
    if comm.rank:
        comm.recv(span(comm.rank, trees.end(comm)), trees.parent(comm))
    for child, end in trees.children(comm):
        comm.send(span(child, end), child)
