"""Chapter 20: collectives in few rounds, by doubling, halving, pipelines and pairs of trees.

The sources are Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication
Operations in MPICH* (2005), and Sanders, Speck and Träff, *Two-tree algorithms for full
bandwidth broadcast, reduction and scan* (2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    demo,
    from_roots,
    kinds,
    nbytes,
    reductions,
    tags,
)
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    Growth,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
    reduced_in_place,
)
from grader.exercise.limits import (
    along_chain,
    combined,
    largest_message,
    messages,
    moved,
    point,
    rounds,
    sent,
    sent_elements,
)
from headcount.core.values import describe, show
from headcount.core.verdict import Diagnosis

# What both all-reduces share. -------------------------------------------------------


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def is_power(n: int) -> bool:
    """Return whether n is a power of two."""
    return n & (n - 1) == 0


def floor_log(n: int) -> int:
    """Return ⌊log₂ n⌋."""
    return n.bit_length() - 1


def share(c: Case) -> int:
    """Return ⌈len/n⌉, the elements of the largest of n even shares."""
    return -(-length(c) // c.n)


def _most_elements(c: Case) -> int:
    """Return the most elements that a rank sends in halving and doubling.

    Halving and doubling among p ranks, the largest power of two, takes 2(p − 1) shares of ⌈len/p⌉.
    Where ranks fold, a rank hands over a whole tensor besides, which may be padded: p more.
    """
    p = 1 << floor_log(c.n)
    return (2 * (p - 1) + (0 if is_power(c.n) else p)) * -(-length(c) // p)


def _tensors(draw: Draw) -> Iterator[Case]:
    for name, kind in reductions(draw.n):
        yield draw.case(f"{name} of {kind}", x=draw.per_rank(kind, name), op=OPS[name])


def _on_many_ranks(draw: Draw) -> Case:
    x = draw.per_rank(Kind(torch.int64, (draw.n,)), "SUM")
    return draw.case("SUM of one number a rank", x=x, op=OPS["SUM"])


# Recursive doubling. ----------------------------------------------------------------


def _doubling_rounds(c: Case) -> int:
    """Return the most rounds: log₂ n, or two more than ⌊log₂ n⌋ where ranks must fold."""
    return floor_log(c.n) + (0 if is_power(c.n) else 2)


def _from_one_side(e: Evidence) -> bool:
    """Return whether ranks talk to one side at the distances 1, 2, 4, …, and values are wrong.

    No program tells: on a power of two of ranks the values differ in their rounding alone.
    """
    wrong = {one.case.n for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE}
    # on three ranks, the distances to one side are those to all ranks
    ran = [one for one in e.failed if one.limit is None and one.case.n > 3]
    return bool(wrong and ran) and all(map(_to_one_side, ran)) and not any(map(is_power, wrong))


def _to_one_side(one: JudgedCase) -> bool:
    n = one.case.n
    way = {(op.peer - op.rank) % n for op in one.trace.sends()}
    every = ({1 << k for k in range(rounds)} for rounds in (floor_log(n), floor_log(n - 1) + 1))
    return any(way in (steps, {n - step for step in steps}) for steps in every)


recursive_doubling_all_reduce = Exercise(
    signature="recursive_doubling_all_reduce(x: Tensor, op) -> None",
    summary="in place, in log₂ n rounds: SUM, AVG, MIN, MAX or PRODUCT, any number of ranks",
    inputs=_tensors,
    values=reduced_in_place(same_bits=True),
    # a power of two shows the rounds, three ranks what folding is for, and seven that each folds
    # into a rank of its own
    world_sizes=(1, 4, 2, 3, 7, 8),
    traffic=TrafficRules(
        limits=(
            point(rounds("≤", _doubling_rounds)),
            point(rounds("≥", lambda c: floor_log(c.n) if is_power(c.n) and length(c) else 0)),
            # a rank sends one message a round, so this adds nothing where ranks must fold
            sent("≤", lambda c: _doubling_rounds(c) * nbytes(c.x[0])),
            sent("≥", lambda c: floor_log(c.n) * nbytes(c.x[0]) if is_power(c.n) else 0),
        ),
        growth=Growth(_on_many_ranks),
        least=combined,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), op=OPS["SUM"]),
    mistakes=(
        *evidence.BUFFER_RACES,
        evidence.AVERAGE_ALONE,
        Mistake(
            "Some x are counted twice. Taking from the ranks at the distances 1, 2, 4, … to one"
            " side meets every rank exactly once only if the number of ranks is a power of two.",
            when=_from_one_side,
        ),
    ),
)


# Halving and doubling (Rabenseifner). -----------------------------------------------


def _short_ones_alone(e: Evidence) -> bool:
    """Return whether messages do not meet their receives, and only where some halves are empty."""
    lost = (Diagnosis.DEADLOCK, Diagnosis.UNMATCHED_MESSAGE, Diagnosis.SIZE_MISMATCH)
    return e.diagnosis in lost and all(length(one.case) < one.case.n for one in e.failed)


halving_doubling_all_reduce = Exercise(
    signature="halving_doubling_all_reduce(x: Tensor, op) -> None",
    summary="in place: a reduce-scatter by halving, an all-gather by doubling; any n, any length",
    inputs=_tensors,
    values=reduced_in_place(same_bits=True),
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            point(rounds("≤", lambda c: 2 * floor_log(c.n) + (0 if is_power(c.n) else 2))),
            point(
                rounds(
                    "≥", lambda c: 2 * floor_log(c.n) if is_power(c.n) and length(c) >= c.n else 0
                )
            ),
            point(sent_elements("≤", _most_elements)),
        ),
        growth=Growth(_on_many_ranks),
        least=combined,
    ),
    demo=lambda n: demo(n, x=tags(n, n), op=OPS["SUM"]),
    mistakes=(
        *evidence.BUFFER_RACES,
        evidence.AVERAGE_ALONE,
        Mistake(
            "The length is smaller than n here, so some halves are empty. You may send them or"
            " leave them out, but both ends have to do the same: let sender and receiver look at"
            " the size of the same half.",
            when=_short_ones_alone,
        ),
    ),
)


# The pipelined broadcast. -----------------------------------------------------------


def _pieces(c: Case) -> int:
    """Return the number of pieces that are sent: at most one for each element, at least one."""
    return max(1, min(int(c.pieces), length(c)))


#: Numbers of pieces, for the kinds of :func:`grader.exercise.cases.kinds` in turn.
_PIECES = (3, 4, 2, 16, 2, 9, 1, 5)


def _streams(draw: Draw) -> Iterator[Case]:
    asked = zip(draw.with_roots(kinds(draw.n)), _PIECES, strict=True)
    for (kind, src), pieces in asked:
        yield draw.case(
            f"{kind} from rank {src} in {pieces} piece{'s' * (pieces > 1)}",
            x=draw.per_rank(kind),
            src=src,
            pieces=pieces,
        )


pipelined_broadcast = Exercise(
    signature="pipelined_broadcast(x: Tensor, src: int, pieces: int) -> None",
    summary="in place, along the chain src, src + 1, … in pieces: n − 2 + pieces rounds",
    inputs=_streams,
    values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
    # on two ranks nothing is passed on
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            along_chain(),
            # before the rounds: fewer of these come of fewer messages alone
            point(messages("=", lambda c: (c.n - 1) * _pieces(c))),
            point(rounds("=", lambda c: c.n - 2 + _pieces(c) if c.n > 1 else 0)),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 4), src=1 % n, pieces=4),
)


# Scatter and all-gather (van de Geijn). ---------------------------------------------


scatter_all_gather_broadcast = Exercise(
    signature="scatter_all_gather_broadcast(x: Tensor, src: int) -> None",
    summary="in place: src scatters x, then all gather it; no rank sends x twice",
    inputs=from_roots,
    values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            point(sent_elements("≤", lambda c: 2 * (c.n - 1) * share(c))),
            point(largest_message("≤", lambda c: -(-c.n // 2) * share(c))),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, n), src=1 % n),
    mistakes=(
        *evidence.BUFFER_RACES,
        Mistake(
            "Every rank waits until its message is received, and none receives. Start with request"
            " = dist.isend(...), then recv, and only then request.wait().",
            when=evidence.all_send,
        ),
    ),
)


# The best number of pieces. ---------------------------------------------------------


def pipeline_seconds(n: int, size: int, alpha: float, beta: float, pieces: int) -> Fraction:
    """Return the exact seconds of a pipelined broadcast of ``size`` bytes along a chain."""
    return (n - 2 + pieces) * (Fraction(alpha) + Fraction(beta) * size / pieces)


def settled(size: int, square: float | Fraction) -> int:
    """Return the best whole number where the best real one is √square, from 1 to ``size``.

    k + 1 pieces are better than k as long as k(k + 1) is below the square.
    """
    low = math.isqrt(int(square))
    return max(1, min(low + (low * (low + 1) < square), size))


def best(n: int, size: int, alpha: float, beta: float) -> int:
    """Return the best number of pieces; the cost is convex in it, with one minimum."""
    if n <= 2:
        return 1
    return settled(size, Fraction(beta) * (n - 2) * size / Fraction(alpha))


#: Name, ranks, bytes, α in seconds, β in seconds per byte.
_CHAINS: tuple[tuple[str, int, int, float, float], ...] = (
    ("10 ranks, 2000 bytes", 10, 2000, 1e-6, 1.01e-9),
    ("512 ranks, 64 MiB", 512, 64 << 20, 1e-5, 1e-10),
    ("6 ranks, where the best k on paper is 1.45", 6, 1000, 1e-6, 2.1e-6 / 4000),
    ("6 ranks, where the best k on paper is 1.38", 6, 1000, 1e-6, 1.9e-6 / 4000),
    ("3 ranks, a megabyte", 3, 10**6, 1.3e-5, 1e-9),
    ("2 ranks, a megabyte", 2, 10**6, 1e-5, 1e-9),
    ("1 rank, a megabyte", 1, 10**6, 1e-5, 1e-9),
    ("1000 ranks, 7 bytes on a slow link", 1000, 7, 1e-7, 1e-4),
    ("8 ranks, no bytes", 8, 0, 1e-5, 1e-9),
    ("8 ranks, bytes cost nothing", 8, 10**6, 1e-5, 0.0),
    ("8 ranks, a long latency", 8, 100, 1e-3, 1e-9),
    ("4096 ranks, a gigabyte", 4096, 10**9, 1e-7, 1e-9),
)


def _chains(draw: Draw) -> Iterator[Case]:
    for name, n, size, alpha, beta in _CHAINS:
        # a little of chance, and never so much that another number would be best or nearly so
        chance = abs(draw.factors(Kind(torch.float64, (1,))).item())
        slow = alpha * (1 + 0.01 * chance)
        k = best(n, size, slow, beta)
        while _nearly_two(n, size, slow, beta, k):
            slow *= 1.0001
            k = best(n, size, slow, beta)
        yield draw.case(name, n=n, nbytes=size, alpha=slow, beta=beta)


def _nearly_two(n: int, size: int, alpha: float, beta: float, k: int) -> bool:
    """Return whether a number beside the best one costs the same, up to the error of a float."""
    if n <= 2:
        return False
    least = pipeline_seconds(n, size, alpha, beta, k)
    others = [one for one in (k - 1, k + 1) if 1 <= one <= max(1, size)]
    costs = (pipeline_seconds(n, size, alpha, beta, one) for one in others)
    return any(cost - least < least * Fraction(1, 10**11) for cost in costs)


best_pieces = Exercise(
    signature="best_pieces(n: int, nbytes: int, alpha: float, beta: float) -> int",
    summary="the number of pieces that makes a pipelined broadcast fastest",
    inputs=_chains,
    world_sizes=(1,),
    values=Values(lambda c: [best(*c.arguments(0))]),
    mistakes=(
        Mistake(
            "There is at least one piece, even where nothing has to be cut: the result is never"
            " below 1.",
            when=lambda e: type(e.actual[0]) is int and e.actual[0] < 1,
        ),
        Mistake(
            "On two ranks nothing is passed on, so more pieces only cost more latencies: one"
            " is best. On one rank nothing is sent at all.",
            when=lambda e: e.case.columns["n"] <= 2 and type(e.actual[0]) is int,
        ),
        Mistake(
            "nbytes and beta may be 0, and n may be 1 or 2. Do not divide by anything"
            " that may be 0.",
            when=lambda e: e.raised("ZeroDivisionError"),
        ),
    ),
)


# Two trees. -------------------------------------------------------------------------

_NAMES = ("first", "second")

#: What is said of how two trees share the work.
_INNER = "ranks with children in both trees"


def _report(c: Case, returned: Any) -> dict[str, str]:
    """Return what holds of two trees."""
    n = c.columns["n"]
    fault = _malformed(returned, n)
    if c.look == "roles":
        # lists without a single parent would do for this, so only trees are looked at
        if fault != _sound(n) or not all(map(_is_tree, returned)):
            return {_INNER: "unknown, as these are not two trees"}
        inner = [{p for p in tree if p is not None} for tree in returned]
        return {_INNER: _named(inner[0] & inner[1])}
    facts = {"the result": fault}
    for name, place in zip(_NAMES, range(2), strict=True):
        tree = returned[place] if fault == _sound(n) else [None] * n
        depths = _depths(tree)
        facts[f"roots of the {name} tree"] = str(tree.count(None))
        facts[f"ranks that never reach the root of the {name} tree"] = _named(
            r for r, depth in enumerate(depths) if depth is None
        )
        facts[f"ranks with more than two children in the {name} tree"] = _named(
            r for r in range(n) if tree.count(r) > 2
        )
        most = (n - 1).bit_length() + 1
        deepest = max(depth or 0 for depth in depths)
        facts[f"edges from the deepest rank to the root of the {name} tree"] = (
            f"at most {most}" if deepest <= most else str(deepest)
        )
    return facts


def _sound(n: int) -> str:
    return f"two lists of {n} parents"


def _malformed(returned: Any, n: int) -> str:
    """Return what is wrong with the form of a result; what it should be if nothing is."""
    if not isinstance(returned, (list, tuple)) or len(returned) != 2:
        return describe(returned)
    for name, tree in zip(_NAMES, returned, strict=True):
        if not isinstance(tree, (list, tuple)):
            return f"a pair whose {name} entry is {describe(tree)}"
        if len(tree) != n:
            return f"a pair whose {name} list has {len(tree)} entries"
        for r, parent in enumerate(tree):
            if parent is not None and (type(parent) is not int or not 0 <= parent < n):
                return f"a pair whose {name} list has {show(parent)} as the parent of rank {r}"
    return _sound(n)


def _depths(tree: Sequence[int | None]) -> list[int | None]:
    """Return the number of edges from each rank to a root; None where a circle never ends."""
    found: list[int | None] = []
    for rank in range(len(tree)):
        depth, here = 0, tree[rank]
        while here is not None and depth <= len(tree):
            depth, here = depth + 1, tree[here]
        found.append(depth if here is None else None)
    return found


def _is_tree(tree: Sequence[int | None]) -> bool:
    """Return whether there is one root, and every rank leads to it."""
    return tree.count(None) == 1 and None not in _depths(tree)


def _named(ranks: Any) -> str:
    """Return ranks in words, the first few of many."""
    few = sorted(ranks)
    shown = ", ".join(map(str, few[:4]))
    return f"{shown}, …" if len(few) > 4 else shown or "none"


def _right(c: Case) -> list[dict[str, str]]:
    """Return the report on trees that are right."""
    if c.look == "roles":
        return [{_INNER: "none"}]
    n = c.columns["n"]
    facts = {"the result": _sound(n)}
    for name in _NAMES:
        facts |= {
            f"roots of the {name} tree": "1",
            f"ranks that never reach the root of the {name} tree": "none",
            f"ranks with more than two children in the {name} tree": "none",
            f"edges from the deepest rank to the root of the {name} tree": (
                f"at most {(n - 1).bit_length() + 1}"
            ),
        }
    return [facts]


#: Numbers of ranks: small ones to read, powers of two, their neighbours, and large ones.
_FORESTS = (7, 8, 5, 2, 3, 4, 6, 1, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 100, 1000)


def _forests(draw: Draw) -> Iterator[Case]:
    for look, words in (("trees", "as trees"), ("roles", "who passes on")):
        for n in _FORESTS:
            case = draw.case(f"{n} rank{'s' * (n > 1)}, {words}", n=n)
            yield replace(case, secrets={"look": look})


def _told(e: Evidence, words: str) -> bool:
    """Return whether a fact that begins with these words is the first that is wrong."""
    got, want = e.actual[0], _right(e.case)[0]
    wrong = next((name for name in want if got[name] != want[name]), "")
    return wrong.startswith(words)


double_trees = Exercise(
    signature="double_trees(n: int) -> tuple[list, list]",
    summary="the parents in two trees over the same ranks; no rank has children in both",
    inputs=_forests,
    world_sizes=(1,),
    values=Values(_right, facts=_report),
    # what is no tree, or ends in an exception, says nothing of who passes on
    point=lambda one: one.case.look == "roles" and one.diagnosis is Diagnosis.WRONG_VALUE,
    mistakes=(
        Mistake(
            "Both are trees, but some ranks have children in both. A binary tree needs only n // 2"
            " ranks with children: let the second tree use the ranks that have none in the first.",
            when=lambda e: _told(e, "ranks with children in both"),
        ),
        Mistake(
            "A tree is too deep. If each level is as full as it can be, the number of ranks doubles"
            " from level to level: ⌈log₂ n⌉ edges are enough, and one more is allowed.",
            when=lambda e: _told(e, "edges from the deepest"),
        ),
        Mistake(
            "A rank has more than two children. A binomial tree has many at its root; here a rank"
            " passes on to two at most.",
            when=lambda e: _told(e, "ranks with more than two"),
        ),
        Mistake(
            "Each tree has one root, whose parent is None; every other rank has a parent.",
            when=lambda e: _told(e, "roots of"),
        ),
        Mistake(
            "Follow the parents from the ranks that the message names: they lead round in a cycle"
            " and never to the root.",
            when=lambda e: _told(e, "ranks that never reach"),
        ),
        Mistake(
            "Return two lists of n entries. Entry r is the parent of rank r, a Python int from 0 to"
            " n − 1, and None for the root.",
            when=lambda e: _told(e, "the result"),
        ),
    ),
)
