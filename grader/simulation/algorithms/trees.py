"""The binomial tree: rank 0 is its root, and every subtree is a run of ranks.

(Chan, Heimlich, Purkayastha and van de Geijn 2007, https://doi.org/10.1002/cpe.1206.)
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.simulation.communicator import Communicator

__all__ = ["children", "end", "parent"]


def parent(comm: Communicator) -> int:
    """The rank above this one, which is not the root."""
    return comm.rank & (comm.rank - 1)


def children(comm: Communicator) -> Iterator[tuple[int, int]]:
    """The ranks below this one, the largest subtree first: its first rank, and its end."""
    distance = _reach(comm) // 2
    while distance:
        child = comm.rank + distance
        if child < comm.size:
            yield child, min(child + distance, comm.size)
        distance //= 2


def end(comm: Communicator) -> int:
    """The end of the ranks at this one and below."""
    return min(comm.rank + _reach(comm), comm.size)


def _reach(comm: Communicator) -> int:
    """How many ranks its subtree would have, if there were enough."""
    return comm.rank & -comm.rank if comm.rank else 1 << (comm.size - 1).bit_length()
