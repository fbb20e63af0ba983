"""All-reduce: every rank's tensor becomes the reduction of all."""

from __future__ import annotations

import torch

from grader.simulation.algorithms import all_gather, broadcast, reduce, reduce_scatter
from grader.simulation.algorithms.blocks import even
from grader.simulation.algorithms.folding import Folding, double, halve
from grader.simulation.algorithms.reductions import Combine
from grader.simulation.communicator import Communicator

__all__ = ["linear", "rabenseifner", "recursive_doubling", "reduce_broadcast", "ring"]


def linear(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """One rank receives from all, one after the other, and sends to all."""
    reduce.linear(comm, tensor, combine)
    broadcast.linear(comm, tensor)


def reduce_broadcast(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """A reduce and a broadcast, both on a binomial tree.  (Chan et al. 2007.)"""
    reduce.binomial_tree(comm, tensor, combine)
    broadcast.binomial_tree(comm, tensor)


def ring(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """A reduce-scatter and an all-gather, both on a ring.

    (Patarasuk and Yuan 2009, https://doi.org/10.1016/j.jpdc.2008.09.002.)
    """
    blocks = even(tensor, comm.size)
    reduce_scatter.ring(comm, blocks, combine)
    all_gather.ring(comm, blocks)


def recursive_doubling(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Pairs at distance 1, 2, 4, … exchange their whole tensors.

    (Thakur, Rabenseifner and Gropp 2005; folded where n is no power of two.)
    """
    folding = Folding(comm)
    if _fold(comm, folding, tensor, combine):
        arriving, distance = torch.empty_like(tensor), 1
        while distance < folding.power:
            other = folding.rank(folding.place ^ distance)
            comm.exchange(tensor, other, arriving, other)
            combine(tensor, arriving)
            distance *= 2
    _unfold(comm, folding, tensor)


def rabenseifner(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """A reduce-scatter by recursive halving, an all-gather by recursive doubling.

    (Rabenseifner's algorithm, in Thakur, Rabenseifner and Gropp 2005; folded where n is no
    power of two.)
    """
    folding = Folding(comm)
    if _fold(comm, folding, tensor, combine):
        blocks = even(tensor, folding.power)
        halve(comm, folding, blocks, combine)
        double(comm, folding, blocks)
    _unfold(comm, folding, tensor)


def _fold(comm: Communicator, folding: Folding, tensor: torch.Tensor, combine: Combine) -> bool:
    """Combine the tensors of pairs; whether this rank has a place."""
    if folding.aside:
        comm.send(tensor, folding.partner)
    elif folding.partner >= 0:
        arriving = torch.empty_like(tensor)
        comm.recv(arriving, folding.partner)
        combine(tensor, arriving)
    return not folding.aside


def _unfold(comm: Communicator, folding: Folding, tensor: torch.Tensor) -> None:
    """Give the result to those that stood aside."""
    if folding.aside:
        comm.recv(tensor, folding.partner)
    elif folding.partner >= 0:
        comm.send(tensor, folding.partner)
