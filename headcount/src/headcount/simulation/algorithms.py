"""The algorithms of the built-in collectives of simulated ranks, from the literature.

Each algorithm is a function ``COLLECTIVE_NAME`` over a
:class:`~headcount.simulation.builtin.Communicator`; it moves or combines flat tensors, or blocks of
one.  In a collective with a root, the root is rank 0 of the communicator.  :data:`ALGORITHMS`, at
the end, is the registry; a source that is cited briefly is in :data:`SOURCES`.

Students are asked to write some of them.  So this module is the judge's: the process that simulates
ranks never imports it, and gets the functions that it needs as data, see :func:`packed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from headcount.core.errors import RequestError
from headcount.core.program import packed_by_value
from headcount.simulation.builtin import (
    SUBTREE_END,
    UNEVEN_BLOCKS,
    Blocks,
    Combine,
    Communicator,
    Span,
    Tensors,
    even_blocks,
    wait_all,
    with_bit,
)

__all__ = [
    "ALGORITHMS",
    "DEFAULTS",
    "SOURCES",
    "UNEVEN",
    "Algorithm",
    "choose",
    "packed",
    "subtree_end",
    "table",
]


# The binomial tree. ---------------------------------------------------------------
#
# Rank 0 is the root, and every subtree is a run of consecutive ranks (Chan et al. 2007).


def _parent(comm: Communicator) -> int:
    """Return the parent of a rank other than the root."""
    return comm.rank & (comm.rank - 1)


def _children(comm: Communicator) -> Iterator[tuple[int, int]]:
    """Yield the children of the rank with the end of their subtrees, the largest subtree first."""
    distance = _full_subtree(comm) // 2
    while distance:
        child = comm.rank + distance
        if child < comm.size:
            yield child, min(child + distance, comm.size)
        distance //= 2


def subtree_end(comm: Communicator) -> int:
    """Return the end of the run of ranks that forms the subtree of the calling rank."""
    return min(comm.rank + _full_subtree(comm), comm.size)


def _full_subtree(comm: Communicator) -> int:
    """Return the size of the rank's subtree in a tree of a power of two ranks."""
    return comm.rank & -comm.rank if comm.rank else 1 << (comm.size - 1).bit_length()


# Folding: algorithms for powers of two at any number of ranks. --------------------
#
# Let P be the largest power of two that is at most n.  The first 2 (n − P) of the n ranks form
# pairs, and the even rank of each pair hands its data to the odd one and sits out.  The P
# remaining ranks each have a *place*, for which the algorithm is written (Thakur et al. 2005,
# section 4; MPICH does the same).


class _Folding:
    """The places of the ranks of a communicator.

    Attributes:
        power: number of places, a power of two.
        place: the calling rank's place; −1 if it sits out.
        partner: the other rank of its pair; −1 if it has none.
    """

    __slots__ = ("_pairs", "partner", "place", "power")

    def __init__(self, comm: Communicator) -> None:
        self.power = 1 << (comm.size.bit_length() - 1)
        self._pairs = comm.size - self.power
        rank = comm.rank
        if rank >= 2 * self._pairs:
            self.place, self.partner = rank - self._pairs, -1
        elif rank % 2:
            self.place, self.partner = rank // 2, rank - 1
        else:
            self.place, self.partner = -1, rank + 1

    @property
    def sits_out(self) -> bool:
        """Whether the calling rank has no place."""
        return self.place < 0

    def first(self, place: int) -> int:
        """Return the first rank that a place stands for; the next place's first rank ends it."""
        return place + min(place, self._pairs)

    def rank(self, place: int) -> int:
        """Return the rank in a place."""
        return self.first(place + 1) - 1

    def blocks(self, blocks: Blocks) -> Blocks:
        """Join blocks, one for each rank, into one for each place."""
        if not self._pairs:
            return blocks
        starts = [blocks.starts[self.first(place)] for place in range(self.power + 1)]
        return Blocks(blocks.flat, starts)


def _halve(comm: Communicator, folding: _Folding, blocks: Blocks, combine: Combine) -> None:
    """Reduce the block of the calling rank's place over all places, by recursive halving."""
    place, distance = folding.place, folding.power // 2
    while distance:
        other = folding.rank(place ^ distance)
        keep = place & -distance
        give = keep ^ distance
        kept = blocks.span(keep, keep + distance)
        arriving = torch.empty_like(kept)
        comm.exchange(blocks.span(give, give + distance), other, arriving, other)
        combine(kept, arriving)
        distance //= 2


def _recursive_doubling(comm: Communicator, folding: _Folding, blocks: Blocks) -> None:
    """Gather the blocks of all places from the rank's own block, by recursive doubling."""
    place, distance = folding.place, 1
    while distance < folding.power:
        other = folding.rank(place ^ distance)
        own = place & -distance
        theirs = own ^ distance
        comm.exchange(
            blocks.span(own, own + distance), other, blocks.span(theirs, theirs + distance), other
        )
        distance *= 2


def _fold(comm: Communicator, folding: _Folding, tensor: torch.Tensor, combine: Combine) -> bool:
    """Combine the tensors of each pair, and return whether the calling rank has a place."""
    if folding.sits_out:
        comm.send(tensor, folding.partner)
    elif folding.partner >= 0:
        arriving = torch.empty_like(tensor)
        comm.recv(arriving, folding.partner)
        combine(tensor, arriving)
    return not folding.sits_out


def _unfold(comm: Communicator, folding: _Folding, tensor: torch.Tensor) -> None:
    """Send the result to the ranks that sat out."""
    if folding.sits_out:
        comm.recv(tensor, folding.partner)
    elif folding.partner >= 0:
        comm.send(tensor, folding.partner)


# Broadcast: every rank gets the tensor of rank 0. ---------------------------------

#: Bytes in a segment that travels down a chain.
SEGMENT = 1 << 16


def broadcast_linear(comm: Communicator, tensor: torch.Tensor) -> None:
    """Send from the root to one rank after the other."""
    if comm.rank:
        comm.recv(tensor, 0)
    else:
        wait_all([comm.isend(tensor, rank) for rank in range(1, comm.size)])


def broadcast_chain(comm: Communicator, tensor: torch.Tensor) -> None:
    """Pass the tensor on to the next rank in segments, each while the following one arrives.

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


def broadcast_binomial_tree(comm: Communicator, tensor: torch.Tensor) -> None:
    """In every round, send from each rank that has the tensor to one that lacks it.

    (Minimum spanning tree broadcast, Chan et al. 2007.)
    """
    if comm.rank:
        comm.recv(tensor, _parent(comm))
    for child, _ in _children(comm):
        comm.send(tensor, child)


def broadcast_scatter_allgather(comm: Communicator, tensor: torch.Tensor) -> None:
    """Scatter on a binomial tree, then all-gather on a ring.

    (Van de Geijn's algorithm for long messages, in Thakur et al. 2005.)
    """
    blocks = even_blocks(tensor, comm.size)
    scatter_binomial_tree(comm, blocks.span)
    all_gather_ring(comm, blocks)


# Scatter: rank r gets block r of rank 0. ------------------------------------------


def scatter_linear(comm: Communicator, span: Span) -> None:
    """Send from the root to one rank after the other."""
    if comm.rank:
        comm.recv(span(comm.rank, comm.rank + 1), 0)
    else:
        wait_all([comm.isend(span(rank, rank + 1), rank) for rank in range(1, comm.size)])


def scatter_binomial_tree(comm: Communicator, span: Span) -> None:
    """Receive the blocks of the rank's subtree, and pass on all but its own.

    (Minimum spanning tree scatter, Chan et al. 2007.)
    """
    if comm.rank:
        comm.recv(span(comm.rank, subtree_end(comm)), _parent(comm))
    for child, end in _children(comm):
        comm.send(span(child, end), child)


# Gather: rank 0 gets the block of every rank. -------------------------------------


def gather_linear(comm: Communicator, span: Span) -> None:
    """Send from every rank to the root, which receives one block after the other."""
    if comm.rank:
        comm.send(span(comm.rank, comm.rank + 1), 0)
    else:
        wait_all([comm.irecv(span(rank, rank + 1), rank) for rank in range(1, comm.size)])


def gather_binomial_tree(comm: Communicator, span: Span) -> None:
    """Receive the blocks of the rank's subtree, and pass them on together with its own.

    (Minimum spanning tree gather, Chan et al. 2007.)
    """
    for child, end in reversed([*_children(comm)]):
        comm.recv(span(child, end), child)
    if comm.rank:
        comm.send(span(comm.rank, subtree_end(comm)), _parent(comm))


# Reduce: rank 0 gets the reduction; the other ranks' tensors are overwritten. -----


def reduce_linear(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Receive on the root from one rank after the other."""
    if comm.rank:
        comm.send(tensor, 0)
        return
    arriving = torch.empty_like(tensor)
    for rank in range(1, comm.size):
        comm.recv(arriving, rank)
        combine(tensor, arriving)


def reduce_binomial_tree(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Run the broadcast on a binomial tree backwards.

    (Minimum spanning tree reduce, Chan et al. 2007.)
    """
    below = [child for child, _ in _children(comm)]
    arriving = torch.empty_like(tensor) if below else tensor
    for child in reversed(below):
        comm.recv(arriving, child)
        combine(tensor, arriving)
    if comm.rank:
        comm.send(tensor, _parent(comm))


def reduce_rabenseifner(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Reduce-scatter by recursive halving, then gather on a binomial tree.

    (Rabenseifner's algorithm for long messages, in Thakur et al. 2005.)
    """
    blocks = even_blocks(tensor, comm.size)
    reduce_scatter_recursive_halving(comm, blocks, combine)
    gather_binomial_tree(comm, blocks.span)


# All-gather: every rank has its own block in place, and gets all others. ----------


def all_gather_ring(comm: Communicator, blocks: Blocks) -> None:
    """Pass the block received in the last step on to the next rank, in n − 1 steps.

    (Bucket all-gather, Chan et al. 2007.)
    """
    rank, size = comm.rank, comm.size
    after, before = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        outgoing, incoming = (rank - step) % size, (rank - step - 1) % size
        comm.exchange(blocks[outgoing], after, blocks[incoming], before)


def all_gather_recursive_doubling(comm: Communicator, blocks: Blocks) -> None:
    """Exchange all the blocks gathered so far with the rank at distance 1, 2, 4, …

    (Thakur et al. 2005; folded where n is not a power of two.)
    """
    folding = _Folding(comm)
    if folding.sits_out:
        comm.send(blocks[comm.rank], folding.partner)
        comm.recv(blocks.flat, folding.partner)
        return
    if folding.partner >= 0:
        comm.recv(blocks[folding.partner], folding.partner)
    _recursive_doubling(comm, folding, folding.blocks(blocks))
    if folding.partner >= 0:
        comm.send(blocks.flat, folding.partner)


def all_gather_bruck(comm: Communicator, blocks: Blocks) -> None:
    """Collect the blocks r, r + 1, … on rank r, in this order, in ⌈log₂ n⌉ rounds at every n.

    All blocks must have the same size.  (Bruck et al. 1997.)
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


# Reduce-scatter: block r of rank r becomes the reduction of all ranks' blocks r. ----
#
# The other blocks are overwritten.


def reduce_scatter_ring(comm: Communicator, blocks: Blocks, combine: Combine) -> None:
    """Add the rank's own block to the one received, and pass the sum on, in n − 1 steps.

    (Bucket reduce-scatter, Chan et al. 2007.)
    """
    rank, size = comm.rank, comm.size
    after, before = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        mine = blocks[(rank - step - 2) % size]
        arriving = torch.empty_like(mine)
        comm.exchange(blocks[(rank - step - 1) % size], after, arriving, before)
        combine(mine, arriving)


def reduce_scatter_pairwise(comm: Communicator, blocks: Blocks, combine: Combine) -> None:
    """In step k, send to the k-th rank after this one the block that it needs.

    (Thakur et al. 2005.)
    """
    rank, size = comm.rank, comm.size
    mine = blocks[rank]
    arriving = torch.empty_like(mine)
    for step in range(1, size):
        to = (rank + step) % size
        comm.exchange(blocks[to], to, arriving, (rank - step) % size)
        combine(mine, arriving)


def reduce_scatter_recursive_halving(comm: Communicator, blocks: Blocks, combine: Combine) -> None:
    """Exchange with the rank at distance P/2, P/4, … 1 the half of the blocks that it needs.

    (Thakur et al. 2005; folded where n is not a power of two.)
    """
    folding = _Folding(comm)
    if folding.sits_out:
        comm.send(blocks.flat, folding.partner)
        comm.recv(blocks[comm.rank], folding.partner)
        return
    if folding.partner >= 0:
        arriving = torch.empty_like(blocks.flat)
        comm.recv(arriving, folding.partner)
        combine(blocks.flat, arriving)
    _halve(comm, folding, folding.blocks(blocks), combine)
    if folding.partner >= 0:
        comm.send(blocks[folding.partner], folding.partner)


# All-reduce: every rank's tensor becomes the reduction of all. --------------------


def all_reduce_linear(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Receive from all ranks on one rank, one after the other, and send the result to all."""
    reduce_linear(comm, tensor, combine)
    broadcast_linear(comm, tensor)


def all_reduce_reduce_broadcast(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Reduce, then broadcast, both on a binomial tree.  (Chan et al. 2007.)"""
    reduce_binomial_tree(comm, tensor, combine)
    broadcast_binomial_tree(comm, tensor)


def all_reduce_ring(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Reduce-scatter, then all-gather, both on a ring.  (Patarasuk and Yuan 2009.)"""
    blocks = even_blocks(tensor, comm.size)
    reduce_scatter_ring(comm, blocks, combine)
    all_gather_ring(comm, blocks)


def all_reduce_recursive_doubling(
    comm: Communicator, tensor: torch.Tensor, combine: Combine
) -> None:
    """Exchange the whole tensor with the rank at distance 1, 2, 4, …

    (Thakur et al. 2005; folded where n is not a power of two.)
    """
    folding = _Folding(comm)
    if _fold(comm, folding, tensor, combine):
        arriving, distance = torch.empty_like(tensor), 1
        while distance < folding.power:
            other = folding.rank(folding.place ^ distance)
            comm.exchange(tensor, other, arriving, other)
            combine(tensor, arriving)
            distance *= 2
    _unfold(comm, folding, tensor)


def all_reduce_rabenseifner(comm: Communicator, tensor: torch.Tensor, combine: Combine) -> None:
    """Reduce-scatter by recursive halving, then all-gather by recursive doubling.

    (Rabenseifner's algorithm, in Thakur et al. 2005; folded where n is not a power of two.)
    """
    folding = _Folding(comm)
    if _fold(comm, folding, tensor, combine):
        blocks = even_blocks(tensor, folding.power)
        _halve(comm, folding, blocks, combine)
        _recursive_doubling(comm, folding, blocks)
    _unfold(comm, folding, tensor)


# All-to-all: block j of rank i goes to rank j, as block i. ------------------------


def all_to_all_linear(comm: Communicator, received: Tensors, sent: Tensors) -> None:
    """Start all messages at once, beginning with the one to the next rank."""
    rank, size = comm.rank, comm.size
    received[rank].copy_(sent[rank])
    requests = [
        comm.irecv(received[(rank - step) % size], (rank - step) % size) for step in range(1, size)
    ]
    requests += [
        comm.isend(sent[(rank + step) % size], (rank + step) % size) for step in range(1, size)
    ]
    wait_all(requests)


def all_to_all_pairwise(comm: Communicator, received: Tensors, sent: Tensors) -> None:
    """In step k, send to the k-th rank after this one and receive from the k-th before.

    (Thakur et al. 2005.)
    """
    rank, size = comm.rank, comm.size
    received[rank].copy_(sent[rank])
    for step in range(1, size):
        to, source = (rank + step) % size, (rank - step) % size
        comm.exchange(sent[to], to, received[source], source)


def all_to_all_bruck(comm: Communicator, received: Blocks, sent: Blocks) -> None:
    """In round k of ⌈log₂ n⌉, move the blocks whose distance has bit k set by 2ᵏ ranks.

    All blocks must have the same size; see :data:`UNEVEN`.  (Bruck et al. 1997.)
    """
    rank, size = comm.rank, comm.size
    shape = size, sent.flat.numel() // size
    # row w holds the block that has w ranks to go
    rows = sent.flat.view(shape).roll(-rank, 0)
    distance = 1
    while distance < size:
        ways = with_bit(size, distance)
        outgoing = rows[ways]
        incoming = torch.empty_like(outgoing)
        comm.exchange(outgoing, (rank + distance) % size, incoming, (rank - distance) % size)
        rows[ways] = incoming
        distance *= 2
    # the block that has come w ranks far is from rank r − w
    received.flat.view(shape).copy_(rows.flip(0).roll(rank + 1, 0))


# Barrier: no rank continues before all have arrived.  Its messages are empty. -----


def barrier_linear(comm: Communicator) -> None:
    """Report to rank 0, which then releases every rank."""
    nothing = torch.empty(0, dtype=torch.uint8)
    gather_linear(comm, lambda first, last: nothing)
    broadcast_linear(comm, nothing)


def barrier_dissemination(comm: Communicator) -> None:
    """In round k, tell the rank 2ᵏ after this one that all ranks heard of so far have arrived.

    (Hensgen et al. 1988.)
    """
    rank, size, distance = comm.rank, comm.size, 1
    nothing = torch.empty(0, dtype=torch.uint8)
    while distance < size:
        comm.exchange(nothing, (rank + distance) % size, nothing, (rank - distance) % size)
        distance *= 2


# The registry. --------------------------------------------------------------------

#: The publications the algorithms are taken from, with their addresses.
SOURCES = {
    "Bruck et al. 1997": "https://doi.org/10.1109/71.642949",
    "Chan et al. 2007": "https://doi.org/10.1002/cpe.1206",
    "Hensgen et al. 1988": "https://doi.org/10.1007/BF01379320",
    "Patarasuk and Yuan 2009": "https://doi.org/10.1016/j.jpdc.2008.09.002",
    "Pješivac-Grbović et al. 2007": "https://doi.org/10.1007/s10586-007-0012-0",
    "Thakur et al. 2005": "https://doi.org/10.1177/1094342005051521",
}

_BRUCK, _CHAN, _HENSGEN, _PATARASUK, _PJESIVAC, _THAKUR = SOURCES
_NAIVE = "—"


@dataclass(frozen=True)
class Algorithm:
    """One way to carry out a collective.

    Attributes:
        run: the function; all algorithms of a collective take the same arguments.
        source: a key of :data:`SOURCES`, or a dash for an algorithm that needs no citation.
        time: text of its time on a flat network, for a number of ranks n that is a power of two
            and sizes that divide evenly; S is the bytes of the whole tensor, α and β as in
            :mod:`headcount.simulation.clusters`.
    """

    run: Callable[..., Any]
    source: str
    time: str


#: The algorithms, by collective and name.  The first of each collective is the default: on a flat
#: network the one of the fewest rounds and, among those, of the fewest bytes in sequence; for
#: all-reduce and all-to-all the other way round.  Few rounds also make thousands of ranks quick
#: to simulate.
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "broadcast": {
        "binomial_tree": Algorithm(broadcast_binomial_tree, _CHAN, "⌈log₂ n⌉ (α + S β)"),
        "scatter_allgather": Algorithm(
            broadcast_scatter_allgather, _THAKUR, "(log₂ n + n − 1) α + 2 (n − 1)/n S β"
        ),
        "chain": Algorithm(
            broadcast_chain, _PJESIVAC, "(n + m − 2) (α + S/m β), in m segments of 64 KiB"
        ),
        "linear": Algorithm(broadcast_linear, _NAIVE, "(n − 1) (α + S β)"),
    },
    "reduce": {
        "binomial_tree": Algorithm(reduce_binomial_tree, _CHAN, "⌈log₂ n⌉ (α + S β)"),
        "rabenseifner": Algorithm(reduce_rabenseifner, _THAKUR, "2 log₂ n α + 2 (n − 1)/n S β"),
        "linear": Algorithm(reduce_linear, _NAIVE, "(n − 1) (α + S β)"),
    },
    "all_reduce": {
        "rabenseifner": Algorithm(all_reduce_rabenseifner, _THAKUR, "2 log₂ n α + 2 (n − 1)/n S β"),
        "ring": Algorithm(all_reduce_ring, _PATARASUK, "2 (n − 1) (α + S/n β)"),
        "recursive_doubling": Algorithm(all_reduce_recursive_doubling, _THAKUR, "log₂ n (α + S β)"),
        "reduce_broadcast": Algorithm(all_reduce_reduce_broadcast, _CHAN, "2 ⌈log₂ n⌉ (α + S β)"),
        "linear": Algorithm(all_reduce_linear, _NAIVE, "2 (n − 1) (α + S β)"),
    },
    "all_gather": {
        "bruck": Algorithm(all_gather_bruck, _BRUCK, "⌈log₂ n⌉ α + (n − 1)/n S β"),
        "ring": Algorithm(all_gather_ring, _CHAN, "(n − 1) (α + S/n β)"),
        "recursive_doubling": Algorithm(
            all_gather_recursive_doubling, _THAKUR, "log₂ n α + (n − 1)/n S β"
        ),
    },
    "reduce_scatter": {
        "recursive_halving": Algorithm(
            reduce_scatter_recursive_halving, _THAKUR, "log₂ n α + (n − 1)/n S β"
        ),
        "ring": Algorithm(reduce_scatter_ring, _CHAN, "(n − 1) (α + S/n β)"),
        "pairwise": Algorithm(reduce_scatter_pairwise, _THAKUR, "(n − 1) (α + S/n β)"),
    },
    "scatter": {
        "binomial_tree": Algorithm(scatter_binomial_tree, _CHAN, "log₂ n α + (n − 1)/n S β"),
        "linear": Algorithm(scatter_linear, _NAIVE, "(n − 1) (α + S/n β)"),
    },
    "gather": {
        "binomial_tree": Algorithm(gather_binomial_tree, _CHAN, "log₂ n α + (n − 1)/n S β"),
        "linear": Algorithm(gather_linear, _NAIVE, "(n − 1) (α + S/n β)"),
    },
    "all_to_all": {
        "pairwise": Algorithm(all_to_all_pairwise, _THAKUR, "(n − 1) (α + S/n β)"),
        "bruck": Algorithm(all_to_all_bruck, _BRUCK, "log₂ n (α + S/2 β)"),
        "linear": Algorithm(all_to_all_linear, _NAIVE, "at least (n − 1) (α + S/n β)"),
    },
    "barrier": {
        "dissemination": Algorithm(barrier_dissemination, _HENSGEN, "⌈log₂ n⌉ α"),
        "linear": Algorithm(barrier_linear, _NAIVE, "2 (n − 1) α"),
    },
}

#: The default algorithm of each collective.
DEFAULTS = {collective: next(iter(known)) for collective, known in ALGORITHMS.items()}

#: For an all-to-all algorithm that needs blocks of one size, the one that replaces it otherwise.
UNEVEN = {"bruck": "pairwise"}


def choose(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the algorithm of every collective: the wanted ones, and defaults for the rest.

    Raises:
        RequestError: a collective does not exist, or has no such algorithm.
    """
    for collective, name in wanted.items():
        if collective not in ALGORITHMS:
            raise RequestError(
                f"there is no collective {collective!r} to choose an algorithm for;"
                f" there are {_listed(ALGORITHMS)}"
            )
        if name not in ALGORITHMS[collective]:
            raise RequestError(
                f"{collective} has no algorithm {name!r}; it has {_listed(ALGORITHMS[collective])}"
            )
    return {**DEFAULTS, **wanted}


def packed(wanted: Mapping[str, str], allowed: frozenset[str] | None) -> dict[str, bytes]:
    """Return the functions that a simulation needs, each pickled by value.

    They are what :class:`~headcount.simulation.builtin.Builtins` takes: the algorithm of every
    collective that may be called, and of no other.

    Args:
        wanted: as of :func:`choose`.
        allowed: names of the collectives that may be called; ``None`` allows all.

    Raises:
        RequestError: as of :func:`choose`.
    """
    names = choose(wanted)
    functions = {
        collective: ALGORITHMS[collective][name].run
        for collective, name in names.items()
        if allowed is None or collective in allowed
    }
    if "all_to_all" in functions and names["all_to_all"] in UNEVEN:
        functions[UNEVEN_BLOCKS] = ALGORITHMS["all_to_all"][UNEVEN[names["all_to_all"]]].run
    if functions.keys() & {"scatter", "gather"}:
        functions[SUBTREE_END] = subtree_end
    return {name: packed_by_value(function) for name, function in functions.items()}


def table() -> str:
    """Return all algorithms as a Markdown table, with the default of each collective in bold."""
    rows = ["| collective | algorithm | time | source |", "|---|---|---|---|"]
    for collective, known in ALGORITHMS.items():
        for name, algorithm in known.items():
            shown = f"**`{name}`**" if name == DEFAULTS[collective] else f"`{name}`"
            link = SOURCES.get(algorithm.source)
            source = f"[{algorithm.source}]({link})" if link else algorithm.source
            rows.append(f"| `{collective}` | {shown} | {algorithm.time} | {source} |")
    return "\n".join(rows)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
