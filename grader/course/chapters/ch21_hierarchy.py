"""Chapter 21: groups inside nodes and across them, and an all-reduce of two levels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from grader.core.verdict import Diagnosis
from grader.course.cases import OPS, Case, Draw, Kind, magnitude, op_name, reduced
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Gives, Mistake, TrafficRules, Values
from grader.course.limits import across, carried, combined, point, sent_elements
from grader.trace.trace import Operation

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


def named(members: Sequence[int]) -> str:
    """Return how a report names a group."""
    return f"group of rank{'s' * (len(members) > 1)} {', '.join(map(str, members))}"


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
    so it is reported as torch lists it.  What is no group is reported by its type and value.
    """
    found = answer(ranks_per_node)
    pair = isinstance(found, (list, tuple)) and len(found) == 2
    groups = list(found) if pair else [None, None]
    there = [isinstance(group, dist.ProcessGroup) for group in groups]
    listed = [
        dist.get_process_group_ranks(group) if known else []
        for group, known in zip(groups, there, strict=True)
    ]
    mine = torch.full((2, dist.get_world_size()), -1)
    for row, members in zip(mine, listed, strict=True):
        row[: len(members)] = torch.tensor(members, dtype=row.dtype)
    heard = _everyone(mine)
    for place, members in enumerate(listed):
        if members and all(torch.equal(heard[rank][place], mine[place]) for rank in members):
            told = _everyone(torch.tensor([dist.get_rank()]), groups[place])
            listed[place] = [int(rank) for rank in told]
    if not pair:
        return found
    return [
        named(members) if known else f"{type(group).__name__} {group!r}"[:60]
        for group, members, known in zip(groups, listed, there, strict=True)
    ]


def _pairs(c: Case, ranks_per_node: int) -> list[tuple[str, str]]:
    return [
        (named(node_of(r, ranks_per_node)), named(rail_of(r, ranks_per_node, c.n))) for r in c.ranks
    ]


def _places(pick: Callable[[str, str], tuple[str, str]]) -> Gives:
    """Make a ``gives`` that picks two groups of the right pair."""
    return lambda c: [pick(*pair) for pair in _pairs(c, c.ranks_per_node)]


def _reported(e: Evidence, *starts: str) -> bool:
    """Return whether some rank's result has an entry whose report begins with one of these."""
    pairs = [a for a in e.actual if isinstance(a, (list, tuple))]
    return any(str(entry).startswith(starts) for pair in pairs for entry in pair)


_ALL_GROUPS = (
    "new_group is a collective of the whole world: every rank makes the same groups in the same"
    " order, including those that it is not in. Or it makes only its own, with"
    " use_local_synchronization=True."
)

node_groups = Exercise(
    signature="node_groups(ranks_per_node: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]",
    summary="the group of one's node, and that of one's place on all nodes",
    world_sizes=_SIZES,
    inputs=lambda draw: (
        draw.case(f"nodes of {d} rank{'s' * (d > 1)}", ranks_per_node=d) for d in divisors(draw.n)
    ),
    adapter=groups_in_rank,
    values=Values(lambda c: _pairs(c, c.ranks_per_node)),
    traffic=TrafficRules(allowed=frozenset({"new_group"})),
    mistakes=(
        Mistake(
            "The two groups are swapped: the one of the node comes first.",
            gives=_places(lambda node, rail: (rail, node)),
        ),
        Mistake(
            "ranks_per_node is taken for the number of nodes. It is the size of a node; there are"
            " n // ranks_per_node nodes.",
            gives=lambda c: _pairs(c, c.n // c.ranks_per_node),
        ),
        Mistake(
            "Ranks are dealt out to the nodes in turn here. They fill one node after the other: the"
            " node of rank r is r // ranks_per_node, its place there r % ranks_per_node.",
            gives=lambda c: [pair[::-1] for pair in _pairs(c, c.n // c.ranks_per_node)],
        ),
        Mistake(
            "Both are the group of the node. The second has the ranks with the same place on each"
            " node: range(rank % ranks_per_node, n, ranks_per_node).",
            gives=_places(lambda node, rail: (node, node)),
        ),
        Mistake(
            "Both have the same place on all nodes. The first has the ranks of one node:"
            " ranks_per_node of them, one after the other.",
            gives=_places(lambda node, rail: (rail, rail)),
        ),
        Mistake(
            "One of the groups has all ranks. That is so for nodes of 1 or of n ranks only;"
            " otherwise each of the two has a part of them.",
            gives=(
                lambda c: [(node, named(c.ranks)) for node, _ in _pairs(c, c.ranks_per_node)],
                lambda c: [(named(c.ranks), rail) for _, rail in _pairs(c, c.ranks_per_node)],
                lambda c: [(named(c.ranks), named(c.ranks))] * c.n,
            ),
        ),
        Mistake(
            "The second group is the same for all ranks: those with the first place on each node."
            " Every place has a group of its own.",
            gives=lambda c: [
                (node, named(rail_of(0, c.ranks_per_node, c.n)))
                for node, _ in _pairs(c, c.ranks_per_node)
            ],
        ),
        Mistake(
            "Lists of ranks are not groups yet. dist.new_group(ranks) makes a group of them.",
            when=lambda e: _reported(e, "list", "tuple", "range", "Tensor"),
        ),
        Mistake(
            "−100 is what new_group returns on a rank that is not in the group"
            " (dist.GroupMember.NON_GROUP_MEMBER). Keep a group only where rank is among its"
            " members: here a later one has taken its place.",
            when=lambda e: _reported(e, f"int {dist.GroupMember.NON_GROUP_MEMBER}"),
        ),
        Mistake(
            "With use_local_synchronization=True new_group returns None on a rank that is not in"
            " the group. Keep a group only where rank is among its members.",
            when=lambda e: _reported(e, "NoneType") and e.written("use_local_synchronization=True"),
        ),
        Mistake(
            "Ranks wait for each other in new_group: with use_local_synchronization=True a group is"
            " made when all its members have called. Do all of them name the same members, and does"
            " every rank make the same kind of group first?",
            when=lambda e: (
                e.diagnosis is Diagnosis.DEADLOCK and e.written("use_local_synchronization")
            ),
        ),
        Mistake(
            "A group may have only ranks that exist: 0 to n − 1. With range(first, first +"
            " ranks_per_node) let first run in steps of ranks_per_node.",
            when=lambda e: e.says("there is no rank"),
        ),
        Mistake(
            "/ gives a float even where nothing is left over: use // for numbers of ranks and"
            " nodes.",
            when=lambda e: (
                e.says("'float' object cannot be interpreted as an integer")
                or e.says("a rank is a whole number")
            ),
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
        ("SUM", Kind(torch.bfloat16, (1000,))),
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


def _combined(op: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a reduction in float64, or in the integers' own dtype; AVG adds up."""
    wide = torch.float64 if tensors[0].dtype.is_floating_point else tensors[0].dtype
    return reduced(OPS["SUM" if op == "AVG" else op], [t.to(wide) for t in tensors])


def levels(
    c: Case, inside: str = "", between: str = "", divided: Callable[[Case], float] | None = None
) -> list[torch.Tensor] | None:
    """Return what ranks hold if the two levels combine in these ways.

    Args:
        c: a case.
        inside, between: the reduction in a node and across them; ``op`` if empty.
        divided: for AVG, what the sum is divided by; the case tells nothing of other reductions.
    """
    op = op_name(c.op)
    if divided is not None and op != "AVG":
        return None
    parts = [[c.x[r] for r in node_of(first, c.ranks_per_node)]
             for first in range(0, c.n, c.ranks_per_node)]  # fmt: skip
    whole = _combined(between or op, [_combined(inside or op, part) for part in parts])
    by = divided(c) if divided is not None else c.n if op == "AVG" else 1
    return [(whole if by == 1 else whole / by).to(c.x[0].dtype)] * c.n


def _instead(op: str) -> tuple[Gives, ...]:
    """Return the results if one of the levels, or both, reduce by ``op`` whatever is asked."""

    def guess(c: Case, inside: str, between: str) -> list[torch.Tensor] | None:
        if op_name(c.op) == "AVG":
            return None
        return levels(c, inside, between)

    return tuple(partial(guess, inside=a, between=b) for a, b in ((op, op), (op, ""), ("", op)))


def of_the_node(c: Case) -> list[torch.Tensor] | None:
    """Return what ranks hold if nothing crosses: the reduction of each node."""
    if op_name(c.op) == "AVG":
        return None  # divided by n, or by the ranks of a node
    return [reduced(c.op, [c.x[m] for m in node_of(r, c.ranks_per_node)]) for r in c.ranks]


def _own_share_only(e: Evidence) -> bool:
    """Return whether every rank has some of the result, and none more than one share of it."""
    c = e.case
    if e.diagnosis is not Diagnosis.WRONG_VALUE or c.ranks_per_node == 1:
        return False
    right = reduced(c.op, c.x).flatten()
    changed = [(t != c.x[r]).flatten() for r, t in enumerate(e.actual)]
    return any(mask.any() for mask in changed) and all(
        int(mask.sum()) <= share(c) and bool((t.flatten()[mask] == right[mask]).all())
        for mask, t in zip(changed, e.actual, strict=True)
    )


def tail_left(c: Case) -> list[torch.Tensor]:
    """Return the results if the elements that are left over are not reduced."""
    whole = length(c) // int(c.ranks_per_node) * int(c.ranks_per_node)
    total = reduced(c.op, c.x).flatten()
    return [torch.cat([total[:whole], x.flatten()[whole:]]).reshape(x.shape) for x in c.x]


def _flat_ones_right(c: Case) -> list[torch.Tensor]:
    """Return the results of a program that takes flatten() for a copy: it is none in 1-D."""
    return [reduced(c.op, c.x)] * c.n if c.x[0].dim() == 1 else list(c.x)


def _raised(*words: str) -> Callable[[Evidence], bool]:
    return lambda e: e.diagnosis is Diagnosis.EXCEPTION and any(map(e.says, words))


def _crossing(e: Evidence, *kinds: str) -> list[Operation]:
    """Return the calls and messages of these kinds that are between nodes."""
    crossing = e.trace.among(partial(between_nodes, e.case))
    return [op for operations in crossing.operations for op in operations if op.kind in kinds]


def _too_much(test: Callable[[Evidence], bool]) -> Callable[[Evidence], bool]:
    return lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and test(e)


def _whole_world(e: Evidence, *kinds: str) -> bool:
    """Return whether all ranks are in such a call, though neither group has all of them."""
    inner = 1 < e.case.ranks_per_node < e.case.n
    return inner and any(len(e.trace.members(op.group)) == e.case.n for op in _crossing(e, *kinds))


def _of_the_world(e: Evidence) -> bool:
    """Return whether sizes that fit a node are given to a call of the whole world."""
    c, message = e.case, e.failure.message if e.failure else ""
    lists = re.search(r"list of \w+ has (\d+) tensors; a group of (\d+)", message)
    if lists:
        return (int(lists[1]), int(lists[2])) == (c.ranks_per_node, c.n) and nodes(c) > 1
    itself = re.search(r"gives itself (\d+) elements and takes (\d+) from itself", message)
    if itself:
        given, taken = int(itself[1]), int(itself[2])
        return (
            given != taken
            and nodes(c) > 1
            and nodes(c) in (given / (taken or 1), taken / (given or 1))
        )
    uneven = re.search(r"has (\d+) elements, which do not divide evenly among (\d+)", message)
    if not uneven:
        return False
    inside = int(c.ranks_per_node)
    return int(uneven[1]) % inside == 0 and int(uneven[2]) == c.n > inside


def _too_few_pieces(e: Evidence) -> bool:
    """Return whether chunk or split gave fewer pieces than a node has ranks."""
    found = re.search(
        r"has (\d+) tensors; a group of (\d+)", e.failure.message if e.failure else ""
    )
    short = int(found[1]) < int(found[2]) if found else _raised("index out of range")(e)
    return short and e.written(r"\b(chunk|split)\(")


_AVERAGE = (
    Mistake(
        "AVG is the sum divided by the number of ranks; the division is missing.",
        gives=partial(levels, divided=lambda c: 1),
    ),
    Mistake(
        "The sum is divided by the number of ranks on a node. n ranks are added up in all, so"
        " divide by n; or let both levels take the average.",
        gives=partial(levels, divided=lambda c: c.ranks_per_node),
    ),
    Mistake(
        "The sum is divided by the number of nodes. n ranks are added up in all, so divide by n;"
        " or let both levels take the average.",
        gives=partial(levels, divided=nodes),
    ),
    Mistake(
        "The average is divided once too often. Either both levels take the average, or both take"
        " the sum and you divide by n once.",
        gives=(
            partial(levels, divided=lambda c: c.n**2),
            partial(levels, divided=lambda c: c.n * c.ranks_per_node),
            partial(levels, divided=lambda c: c.n * nodes(c)),
        ),
    ),
)

hierarchical_all_reduce = Exercise(
    signature="hierarchical_all_reduce(x: Tensor, op, ranks_per_node: int) -> None",
    summary="in place: reduce-scatter in the node, all-reduce across, all-gather in the node",
    inputs=_tensors,
    values=Values(
        lambda c: [reduced(c.op, c.x)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
    ),
    world_sizes=_SIZES,
    traffic=TrafficRules(
        # the second limit is for those who send many small messages: a flat ring sends twice the whole
        # of x over the border of a node; the plainest all-reduce of a share, through one rank, sends
        # the share to every other node
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
        Mistake(
            "x is unchanged on every rank. The result is in another tensor: write it back at the"
            " end, as in x.copy_(result).",
            gives=lambda c: list(c.x),
        ),
        Mistake(
            "A matrix is unchanged, and only a vector is reduced: what you reduced was a copy of"
            " the matrix. Write the result back, as in x.copy_(result).",
            gives=_flat_ones_right,
            when=lambda e: any(one.case.x[0].dim() == 1 for one in e.passed if one.case.n > 1),
        ),
        Mistake(
            "Every rank has the reduction of its own node: nothing has crossed to the others. The"
            " all_reduce in the second group is missing, or it is in the first.",
            gives=of_the_node,
        ),
        Mistake(
            "Every rank has its own share of the result in x, and no other. The last step is"
            " missing, which is the all_gather in the node.",
            when=_own_share_only,
        ),
        Mistake(
            "The last elements are not reduced: ranks_per_node does not divide the length, and"
            " length // ranks_per_node rounds down. Round up, and pad.",
            gives=tail_left,
        ),
        Mistake(
            "You sum where op says something else. Both the reduce_scatter and the all_reduce need"
            " op=…: without it they sum.",
            gives=_instead("SUM"),
        ),
        *_AVERAGE,
        evidence.AVERAGE_ALONE,
        Mistake(
            "The all_reduce is one of all ranks. It belongs to the group of those that hold the"
            " same share: group=across.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.WRONG_VALUE, Diagnosis.SIZE_MISMATCH)
                and _whole_world(e, "all_reduce")
            ),
        ),
        Mistake(
            "Without group=… a collective is one of all ranks, and this one is called with what"
            " fits a node: say group=node.",
            when=_of_the_world,
        ),
        Mistake(
            "There are fewer pieces than ranks on the node. chunk(k) and split make at most k, and"
            " for many lengths fewer; tensor_split(k) always gives k, some of them empty.",
            when=_too_few_pieces,
        ),
        Mistake(
            "gloo's all_gather takes pieces of one size only. Where ranks_per_node does not divide"
            " the length, pad x first, and cut the padding off afterwards.",
            when=_raised("needs tensors of one size"),
        ),
        Mistake(
            "ranks_per_node does not divide this length. Pad x up to a multiple of it:"
            " x.new_zeros(size * ranks_per_node) with size = -(-x.numel() // ranks_per_node).",
            when=lambda e: (
                length(e.case) % int(e.case.ranks_per_node) != 0
                and _raised(
                    "do not divide evenly",
                    "negative dimension",
                    "is invalid for input of size",
                    "split_with_sizes",
                    "gives itself",
                )(e)
            ),
        ),
        Mistake(
            "gloo's reduce_scatter_tensor compares the first dimensions: give it flat tensors.",
            when=_raised("outputShape[0]"),
        ),
        Mistake(
            "Divide only if op is AVG: integers cannot be divided in place.",
            when=_raised("can't be cast"),
        ),
        Mistake(
            "Buffers for shares and padding need x's dtype: x.new_zeros(size) keeps it.",
            when=_raised("of one dtype", "tensor type", "scalar type"),
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
            "Each rank sends all of x to the other nodes, though in the right group. All ranks of a"
            " node hold the same numbers then, and send them ranks_per_node times: begin with a"
            " reduce_scatter in the node, and let each take its own share.",
            when=_too_much(
                lambda e: any(
                    e.trace.given(op) >= length(e.case) for op in _crossing(e, "all_reduce")
                )
            ),
        ),
        Mistake(
            "Many small messages cross, and together they carry all of x, more than once. A ring"
            " of all ranks does that at the border of every node. Make shares inside the node"
            " first, and let only shares cross.",
            when=_too_much(lambda e: bool(_crossing(e, "send"))),
        ),
        Mistake(
            _ALL_GROUPS,
            when=lambda e: e.diagnosis is Diagnosis.ORDER_MISMATCH and e.says("new_group"),
        ),
    ),
)
