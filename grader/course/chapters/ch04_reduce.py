"""Chapter 04: many values become one, on one rank."""

from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist

from grader.core.verdict import Diagnosis
from grader.course.cases import (
    OPS,
    Case,
    Draw,
    PerRank,
    demo,
    magnitude,
    op_name,
    reduced,
    reductions,
    tags,
)
from grader.course.chapters import evidence
from grader.course.costs import tree_levels
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import combined, messages, point, rounds


def _inputs(draw: Draw) -> Iterator[Case]:
    for i, (name, kind) in enumerate(reductions(draw.n)):
        dst = (draw.n - 1 + i) % draw.n
        x = draw.per_rank(kind, name)
        yield draw.case(f"{name} of {kind} to rank {dst}", x=x, dst=dst, op=OPS[name])


def _on_dst(c: Case, of: Callable[[dist.ReduceOp, PerRank], torch.Tensor]) -> list[torch.Tensor]:
    return [of(c.op, c.x) if r == c.dst else c.x[r] for r in c.ranks]


def _instead(c: Case, wrong: str, *asked: str) -> list[torch.Tensor] | None:
    """Return the results if ``wrong`` were computed where one of ``asked`` is asked for."""
    if c.n == 1 or op_name(c.op) not in asked:
        return None
    return _on_dst(c, lambda _, x: reduced(OPS[wrong], x))


def _divided_each_time(c: Case, by: int) -> list[torch.Tensor] | None:
    """Return dst's result for AVG if it divides after each addition, in rank order."""
    if c.n == 1 or op_name(c.op) != "AVG":
        return None
    total = c.x[c.dst]
    for r in c.ranks:
        if r != c.dst:
            total = (total + c.x[r]) / by
    return [total if r == c.dst else c.x[r] for r in c.ranks]


def _others_changed(e: Evidence) -> bool:
    """Return whether dst is right and the x of another rank has changed."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    got, right = e.actual[e.case.dst].double(), reduced(e.case.op, e.case.x).double()
    return torch.allclose(got, right, rtol=1e-2, atol=1e-5) and any(
        not torch.equal(t, e.case.x[r]) for r, t in enumerate(e.actual) if r != e.case.dst
    )


def _lost(*names: str) -> Callable[[Case], list[torch.Tensor]]:
    """Make the results if x stays as it was for these operations, and is right for the others."""
    return lambda c: list(c.x) if op_name(c.op) in names else _on_dst(c, reduced)


_ONLY_AVG_DIVIDES = Mistake(
    "Only AVG divides, and it is asked for on floating-point numbers alone: integers cannot be"
    " divided in place.",
    when=lambda e: e.says("can't be cast"),
)

reduce = Exercise(
    signature="reduce(x: Tensor, dst: int, op: dist.ReduceOp) -> None",
    summary="in place on dst: SUM, AVG, MIN, MAX or PRODUCT; unchanged elsewhere",
    inputs=_inputs,
    values=Values(
        lambda c: _on_dst(c, reduced),
        result="x",
        reduced=lambda c: c.n,
        # off dst x must not change by a bit, so there nothing is allowed for rounding
        magnitude=lambda c: [
            magnitude(c.op, c.x) if r == c.dst else torch.zeros_like(c.x[r]) for r in c.ranks
        ],
    ),
    traffic=TrafficRules(limits=(messages("=", lambda c: c.n - 1),), least=combined),
    demo=lambda n: demo(n, x=tags(n, 2), dst=0, op=OPS["SUM"]),
    mistakes=(
        *evidence.BUFFER_RACES,
        _ONLY_AVG_DIVIDES,
        evidence.AVERAGE_ALONE,
        Mistake(
            "dst sends, too. Each of the other n − 1 ranks sends once, and dst only receives:"
            " telling everyone the result is an all-reduce, which comes later.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_MESSAGES
                and any(op.rank == e.case.dst for op in e.trace.sends())
            ),
        ),
        Mistake(
            "AVG is the sum divided by the number of ranks; the division is missing.",
            gives=lambda c: _instead(c, "SUM", "AVG"),
        ),
        Mistake(
            "Whatever op says, you sum: compare op with dist.ReduceOp.MIN and the others.",
            gives=lambda c: _instead(c, "SUM", "MIN", "MAX", "PRODUCT"),
        ),
        Mistake(
            "MIN and MAX are swapped.",
            gives=lambda c: _instead(c, "MAX", "MIN") or _instead(c, "MIN", "MAX"),
        ),
        Mistake(
            "The sum is divided by n − 1: dst's own x counts too.",
            gives=lambda c: (
                _on_dst(
                    c, lambda _, x: (reduced(OPS["SUM"], x).double() / (c.n - 1)).to(x[0].dtype)
                )
                if op_name(c.op) == "AVG" and c.n > 1
                else None
            ),
        ),
        Mistake(
            "dst's own x is missing from the result: combine into x, do not overwrite it.",
            gives=lambda c: (
                _on_dst(c, lambda op, x: reduced(op, [t for r, t in enumerate(x) if r != c.dst]))
                if c.n > 1
                else None
            ),
        ),
        Mistake(
            "The division happens once per message, so early terms are divided again and again:"
            " add everything up first, divide once.",
            gives=(lambda c: _divided_each_time(c, c.n), lambda c: _divided_each_time(c, 2)),
        ),
        Mistake(
            "The result is on rank 0. It belongs to dst, which is not always rank 0.",
            gives=lambda c: (
                [reduced(c.op, c.x) if r == 0 else c.x[r] for r in c.ranks] if c.dst else None
            ),
        ),
        Mistake(
            "Every rank has the result. Only dst's x may change; that is what makes a reduce"
            " cheaper than an all-reduce.",
            gives=lambda c: [reduced(c.op, c.x)] * c.n if c.n > 1 else None,
        ),
        Mistake(
            "dst is right, but another rank's x has changed. On a tree or a chain, combine in a"
            " copy: x.clone().",
            when=_others_changed,
        ),
        Mistake(
            "SUM is right, but with another operation x on dst is as it was. torch.minimum(x,"
            " buffer) and x * buffer make new tensors that the caller never sees: write into x, as"
            " with torch.minimum(x, buffer, out=x) or x *= buffer.",
            gives=(_lost("MIN", "MAX"), _lost("MIN", "MAX", "PRODUCT")),
        ),
        Mistake(
            "x on dst is as it was. `x = x + buffer` makes a new tensor that the caller never"
            " sees; `x += buffer` writes into x.",
            gives=lambda c: list(c.x),
            when=lambda e: evidence.rebinds(e, "x"),
        ),
        Mistake(
            "x on dst is as it was. Is what comes combined into x itself, or is the result left in"
            " another tensor?",
            gives=lambda c: list(c.x),
            when=lambda e: not evidence.rebinds(e, "x"),
        ),
    ),
)


def _on_rank_zero(e: Evidence) -> bool:
    """Return whether rank 0 holds the result, and dst, another rank, still its own x."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE or not e.case.dst:
        return False
    got, right = e.actual[0].double(), reduced(e.case.op, e.case.x).double()
    untouched = torch.equal(e.actual[e.case.dst], e.case.x[e.case.dst])
    return untouched and torch.allclose(got, right, rtol=1e-2, atol=1e-5)


def _only_heard_directly(c: Case) -> list[torch.Tensor]:
    """Return the results if every rank of the tree sent its own x in place of a partial result."""
    places = [0, *(1 << k for k in range(tree_levels(c.n)))]
    heard = [c.x[(c.dst + v) % c.n] for v in places]
    if op_name(c.op) == "AVG":
        result = (reduced(OPS["SUM"], heard).double() / c.n).to(heard[0].dtype)
    else:
        result = reduced(c.op, heard)
    return [result if r == c.dst else c.x[r] for r in c.ranks]


tree_reduce = Exercise(
    signature="tree_reduce(x: Tensor, dst: int, op: dist.ReduceOp) -> None",
    summary="the same as reduce on a tree: ⌈log₂ n⌉ rounds",
    inputs=_inputs,
    values=Values(
        lambda c: _on_dst(c, reduced),
        result="x",
        reduced=lambda c: c.n,
        magnitude=reduce.values.magnitude,
    ),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n - 1),
            point(rounds("=", lambda c: tree_levels(c.n))),
        ),
        least=combined,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), dst=0, op=OPS["SUM"]),
    mistakes=(
        *evidence.BUFFER_RACES,
        _ONLY_AVG_DIVIDES,
        evidence.AVERAGE_ALONE,
        Mistake(
            "It is right with 2 and 4 ranks and wrong with 3 and 5, where some partners do not"
            " exist: rank v receives from v + step only if v + step < n, and sends all the same"
            " when its turn comes.",
            when=evidence.on_powers_of_two_only,
        ),
        Mistake(
            "Every message goes to dst, which can receive only one at a time. Let other ranks"
            " combine pairs in the same round, and send what they have combined.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_ROUNDS
                and {op.peer for op in e.trace.sends()} == {e.case.dst}
            ),
        ),
        Mistake(
            "That is a chain: no rank receives more than once, and each waits for the one before"
            " it. In a tree half of the ranks send in the first round, a quarter in the second.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_ROUNDS
                and e.case.n > 2
                and len({op.peer for op in e.trace.sends()}) == e.trace.traffic.messages
            ),
        ),
        Mistake(
            "AVG is the sum divided by the number of ranks; the division is missing.",
            gives=lambda c: _instead(c, "SUM", "AVG"),
        ),
        Mistake(
            "Whatever op says, you sum: compare op with dist.ReduceOp.MIN and the others.",
            gives=lambda c: _instead(c, "SUM", "MIN", "MAX", "PRODUCT"),
        ),
        Mistake(
            "Every rank sends its own x, so what the ranks inside the tree have combined is lost:"
            " send the partial result.",
            gives=_only_heard_directly,
        ),
        Mistake(
            "It fails only where dst is not rank 0. If v counts from dst, then v is a place in the"
            " tree and not a rank: to send to it or receive from it, take rank (v + dst) % n.",
            when=lambda e: evidence.ever_to_itself(e) and all(one.case.dst for one in e.failed),
        ),
        Mistake(
            "The result is on rank 0. The root of the tree is dst: count the ranks from it,"
            " v = (rank − dst) % n.",
            when=_on_rank_zero,
        ),
        Mistake(
            "x on dst is as it was. Is the result in a copy? Write it back at the end, on dst"
            " alone: x.copy_(total).",
            gives=lambda c: list(c.x),
        ),
        Mistake(
            "dst is right, but a rank inside the tree has written into its own x, which must stay"
            " as it was everywhere but on dst: combine in a copy, x.clone().",
            when=_others_changed,
        ),
    ),
)
