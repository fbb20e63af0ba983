"""Gather: rank 0 of the communicator gets the block of every rank.

Blocks are asked for as in :mod:`grader.simulation.algorithms.scatter`.
"""

from __future__ import annotations

from grader.simulation.algorithms import trees
from grader.simulation.algorithms.scatter import Span
from grader.simulation.communicator import Communicator, wait_all

__all__ = ["binomial_tree", "linear"]


def linear(comm: Communicator, span: Span) -> None:
    """Every rank sends to the root, which receives one block after the other."""
    if comm.rank:
        comm.send(span(comm.rank, comm.rank + 1), 0)
    else:
        wait_all([comm.irecv(span(rank, rank + 1), rank) for rank in range(1, comm.size)])


def binomial_tree(comm: Communicator, span: Span) -> None:
    """Every rank gets the blocks of its subtree, and hands them on with its own.

    (Minimum spanning tree gather, Chan et al. 2007.)
    """
    for child, end in reversed([*trees.children(comm)]):
        comm.recv(span(child, end), child)
    if comm.rank:
        comm.send(span(comm.rank, trees.end(comm)), trees.parent(comm))
