"""Reduce: rank 0 of the communicator gets the reduction; the others' tensors are used up."""

from __future__ import annotations

import torch

from grader.simulation.algorithms import gather, reduce_scatter, trees
from grader.simulation.algorithms.blocks import even
from grader.simulation.algorithms.reductions import Combine
from grader.simulation.communicator import Communicator

__all__ = ["binomial_tree", "linear", "rabenseifner"]


def linear(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """The root receives from one rank after the other."""
    if comm.rank:
        comm.send(tensor, 0)
        return
    arriving = torch.empty_like(tensor)
    for rank in range(1, comm.size):
        comm.recv(arriving, rank)
        combine(tensor, arriving)


def binomial_tree(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """The broadcast on a binomial tree, backwards.

    (Minimum spanning tree reduce, Chan et al. 2007.)
    """
    below = [child for child, _ in trees.children(comm)]
    arriving = torch.empty_like(tensor) if below else tensor
    for child in reversed(below):
        comm.recv(arriving, child)
        combine(tensor, arriving)
    if comm.rank:
        comm.send(tensor, trees.parent(comm))


def rabenseifner(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """A reduce-scatter by recursive halving, and a gather on a binomial tree.

    (Rabenseifner's algorithm for long messages, in Thakur, Rabenseifner and Gropp 2005.)
    """
    blocks = even(tensor, comm.size)
    reduce_scatter.recursive_halving(comm, blocks, combine)
    gather.binomial_tree(comm, blocks.span)
