"""Chapter 21: groups inside nodes and across them, and an all-reduce of two levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from grader.course.chapters import evidence
from grader.exercise.cases import OPS, Case, Draw, Kind
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    Mistake,
    TrafficRules,
    Values,
    reduced_in_place,
)
from grader.exercise.groups import group_from_data, group_of, never_connected
from grader.exercise.limits import across, carried, combined, point, sent_elements
from grader.instruments import group_as_data
from headcount.core.verdict import Diagnosis
from headcount.trace.trace import Operation

# Nodes. ---------------------------------------------------------------------------

#: Four ranks come first: on two nodes of two, each kind of group has more than one rank.
_SIZES = (4, 2, 6, 8)


def divisors(n: int) -> list[int]:
    """Return the divisors of n: those between 1 and n first, then 1 and n themselves."""
    inner = [d for d in range(2, n) if n % d == 0]
    return [*inner, 1, n]


def node_of(rank: int, ranks_per_node: int) -> list[int]:
    """Return the ranks of a rank's node."""
    first = rank // ranks_per_node * ranks_per_node
    return list(range(first, first + ranks_per_node))


def rail_of(rank: int, ranks_per_node: int, n: int) -> list[int]:
    """Return the ranks that have a rank's place on all nodes."""
    return list(range(rank % ranks_per_node, n, ranks_per_node))


def between_nodes(c: Case, ranks: Sequence[int]) -> bool:
    """Return whether ranks are on more than one node."""
    return len({rank // c.ranks_per_node for rank in ranks}) > 1


# The two groups of a rank. ----------------------------------------------------------


def _everyone(mine: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
    """Return what each member of a group has, by rank in it, exchanged point to point."""
    n, own = dist.get_world_size(group), dist.get_rank(group)
    heard = [mine.clone() for _ in range(n)]
    others = [place for place in range(n) if place != own]
    requests = [dist.isend(mine, group=group, group_dst=place) for place in others]
    requests += [dist.irecv(heard[place], group=group, group_src=place) for place in others]
    for request in requests:
        assert request is not None
        request.wait()
    return heard


def groups_in_rank(answer: Callable[[int], Any], ranks_per_node: int) -> Any:
    """Make the groups, and ask in each who is there.

    A group is reported by the ranks that answer in it.  Ranks first tell each other which groups
    they have: in one that its members do not agree on, some would wait for others that never come,
    so it is reported as torch lists it.
    """
    found = answer(ranks_per_node)
    if not isinstance(found, (list, tuple)) or len(found) != 2:
        return "other", found
    groups = [group_as_data(one) for one in found]
    mine = torch.full((2, dist.get_world_size()), -1)
    for row, (kind, members) in zip(mine, groups, strict=True):
        if kind == "group":
            row[: len(members)] = torch.tensor(members, dtype=row.dtype)
    heard = _everyone(mine)
    for place, (kind, members) in enumerate(groups):
        if kind == "group" and all(
            torch.equal(heard[rank][place], mine[place]) for rank in members
        ):
            told = _everyone(torch.tensor([dist.get_rank()]), found[place])
            groups[place] = "group", [int(rank) for rank in told]
    return groups


def _groups_from_data(c: Case, data: Any) -> Any:
    return [group_from_data(one) for one in data] if isinstance(data, list) else data[1]


def _pairs(c: Case) -> list[tuple[list[int], list[int]]]:
    """Return the ranks of the two groups of each rank."""
    d = c.ranks_per_node
    return [(node_of(r, d), rail_of(r, d, c.n)) for r in c.ranks]


def _all_make_groups(e: Evidence) -> bool:
    """Return whether every rank waits in new_group; had all made all groups, they would meet."""
    waits = e.failure.waits if e.failure else ()
    return len(waits) == e.case.n and all(wait.call == "new_group" for wait in waits)


node_groups = Exercise(
    signature="node_groups(ranks_per_node: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]",
    summary="the group of one's node, and that of one's place on all nodes",
    world_sizes=_SIZES,
    inputs=lambda draw: (
        draw.case(f"nodes of {d} rank{'s' * (d > 1)}", ranks_per_node=d) for d in divisors(draw.n)
    ),
    adapter=groups_in_rank,
    values=Values(
        lambda c: [tuple(map(group_of, pair)) for pair in _pairs(c)], facts=_groups_from_data
    ),
    traffic=TrafficRules(
        allowed=frozenset({"new_group"}),
        proof=never_connected(lambda c: [ranks for pair in _pairs(c) for ranks in pair]),
    ),
    mistakes=(
        *evidence.NO_GROUPS,
        Mistake(
            "Ranks wait for each other in new_group: with use_local_synchronization=True a group is"
            " made when all its members have called. Do all of them name the same members, and does"
            " every rank make the same kind of group first?",
            when=_all_make_groups,
        ),
    ),
)


# The all-reduce of two levels. ------------------------------------------------------


def _tensors(draw: Draw) -> Iterator[Case]:
    """Draw tensors of every length; nodes of 1 rank and of all ranks get one or two.

    The first length is divided by every number of ranks on a node; it shows what goes wrong
    without padding.
    """
    n = draw.n
    inner = divisors(n)[:-2] or [1, 2]
    kinds = (
        ("SUM", Kind(torch.int64, (n,))),
        ("SUM", Kind(torch.int64, (n + 1,))),
        ("AVG", Kind(torch.float64, (3, 5))),
        ("MIN", Kind(torch.int64, (7,))),
        ("PRODUCT", Kind(torch.float64, (n - 1,))),
        ("MAX", Kind(torch.float32, (2, 4))),
        ("SUM", Kind(torch.float32, (1,))),
        ("SUM", Kind(torch.float32, (0,))),
        ("SUM", Kind(torch.bfloat16, (1000,), special=True)),
        ("AVG", Kind(torch.float32, (1000,))),
    )
    each = [inner[i % len(inner)] for i in range(len(kinds) - 2)] + [1, n]
    for (name, kind), d in zip(kinds, each, strict=True):
        nodes = f"nodes of {d} rank{'s' * (d > 1)}"
        x = draw.per_rank(kind, name)
        yield draw.case(f"{name} of {kind}, {nodes}", x=x, op=OPS[name], ranks_per_node=d)


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def share(c: Case) -> int:
    """Return the elements of x that one rank has to take across: its share, rounded up."""
    return -(-length(c) // int(c.ranks_per_node))


def nodes(c: Case) -> int:
    """Return the number of nodes."""
    return int(c.n // c.ranks_per_node)


def _crossing(e: Evidence, *kinds: str) -> list[Operation]:
    """Return the calls and messages of these kinds that are between nodes."""
    crossing = e.trace.part_where(partial(between_nodes, e.case))
    return [op for operations in crossing.operations for op in operations if op.kind in kinds]


def _whole_world(e: Evidence, *kinds: str) -> bool:
    """Return whether all ranks are in such a call, though neither group has all of them."""
    inner = 1 < e.case.ranks_per_node < e.case.n
    return inner and any(len(e.trace.members(op.group)) == e.case.n for op in _crossing(e, *kinds))


def _with_whole(e: Evidence) -> int:
    """Return how many ranks give all of x to an all-reduce between nodes."""
    crossing = _crossing(e, "all_reduce")
    return len({op.rank for op in crossing if e.trace.given(op) >= length(e.case)})


def _too_much(test: Callable[[Evidence], bool]) -> Callable[[Evidence], bool]:
    """Make a test of what crosses; no program tells, since in each of these ways as much does."""
    return lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and test(e)


def _flat_ring(e: Evidence) -> bool:
    """Return whether what crosses are messages of at most 1/n of x, between neighbours in rank."""
    crossing, n = _crossing(e, "send"), e.case.n
    return bool(crossing) and all(
        (op.peer - op.rank) % n in (1, n - 1) and op.count <= -(-length(e.case) // n)
        for op in crossing
    )


def _fails_unless_it_divides(e: Evidence) -> bool:
    """Return whether there are exceptions, and only where a node's ranks do not divide x evenly."""
    divides = [one for one in e.judged if length(one.case) % one.case.ranks_per_node == 0]
    return (
        e.diagnosis is Diagnosis.EXCEPTION
        and any(one.case.ranks_per_node > 1 for one in divides)
        and all(one.passed for one in divides)
    )


hierarchical_all_reduce = Exercise(
    signature="hierarchical_all_reduce(x: Tensor, op, ranks_per_node: int) -> None",
    summary="in place: reduce-scatter in the node, all-reduce across, all-gather in the node",
    inputs=_tensors,
    values=reduced_in_place(),
    world_sizes=_SIZES,
    traffic=TrafficRules(
        # the second limit is for those who send many small messages: a flat ring sends twice the
        # whole of x over the border of a node; the plainest all-reduce of a share, through one
        # rank, sends the share to every other node
        limits=(
            point(across(carried("≤", share), "between nodes", between_nodes)),
            point(
                across(
                    sent_elements("≤", lambda c: max(2, nodes(c) - 1) * share(c)),
                    "between nodes",
                    between_nodes,
                )
            ),
        ),
        least=combined,
        allowed=frozenset({"new_group", "reduce_scatter", "all_reduce", "all_gather"}),
    ),
    mistakes=(
        evidence.AVERAGE_ALONE,
        Mistake(
            "ranks_per_node does not divide this length. Pad x up to a multiple of it:"
            " x.new_zeros(size * ranks_per_node) with size = -(-x.numel() // ranks_per_node).",
            when=_fails_unless_it_divides,
        ),
        Mistake(
            "The groups are swapped: the reduce_scatter is across the nodes. The result is right,"
            " but all of x crosses. First the node, then across, then the node.",
            when=_too_much(
                lambda e: (
                    bool(_crossing(e, "reduce_scatter"))
                    and not _whole_world(e, "reduce_scatter")
                    and not _crossing(e, "all_reduce")
                )
            ),
        ),
        Mistake(
            "One collective of all ranks carries x across. Share the work among the ranks of a node"
            " first, so that each takes only 1/ranks_per_node of it to the other nodes.",
            when=_too_much(lambda e: _whole_world(e, "all_reduce", "reduce_scatter", "all_gather")),
        ),
        Mistake(
            "One rank of each node sends all of x to the other nodes, while the node's other ranks"
            " wait. Begin with a reduce_scatter in the node, and let each rank take its own share"
            " across.",
            when=_too_much(lambda e: _with_whole(e) == nodes(e.case)),
        ),
        Mistake(
            "Each rank sends all of x to the other nodes, though in the right group, so what leaves"
            " a node is x ranks_per_node times: begin with a reduce_scatter in the node, and let"
            " each rank take its own share across.",
            when=_too_much(lambda e: _with_whole(e) == e.case.n),
        ),
        Mistake(
            "Many small messages cross, and together they carry all of x, more than once. A ring"
            " of all ranks does that at the border of every node. Make shares inside the node"
            " first, and let only shares cross.",
            when=_too_much(_flat_ring),
        ),
    ),
)
