"""Chapter 04: many values become one, on one rank."""

from collections.abc import Iterator

import torch

from grader.course.chapters import evidence
from grader.course.costs import tree_levels
from grader.exercise.cases import OPS, Case, Draw, demo, magnitude, reduced, reductions, tags
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import combined, messages, point, rounds
from headcount.core.verdict import Diagnosis


def _inputs(draw: Draw) -> Iterator[Case]:
    for i, (name, kind) in enumerate(reductions(draw.n)):
        dst = (draw.n - 1 + i) % draw.n
        x = draw.per_rank(kind, name)
        yield draw.case(f"{name} of {kind} to rank {dst}", x=x, dst=dst, op=OPS[name])


def _reduced(c: Case) -> list[torch.Tensor]:
    return [reduced(c.op, c.x) if r == c.dst else c.x[r] for r in c.ranks]


def _others_changed(e: Evidence) -> bool:
    """Return whether dst is right and the x of another rank has changed."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    got, right = e.actual[e.case.dst].double(), reduced(e.case.op, e.case.x).double()
    return torch.allclose(got, right, rtol=1e-2, atol=1e-5, equal_nan=True) and any(
        not evidence.same(t, e.case.x[r]) for r, t in enumerate(e.actual) if r != e.case.dst
    )


_CHANGED = Mistake(
    "dst is right, but another rank's x has changed, which must stay as it was. Where a rank"
    " combines what it is going to pass on, let it do so in a copy: x.clone().",
    when=_others_changed,
)

reduce = Exercise(
    signature="reduce(x: Tensor, dst: int, op: dist.ReduceOp) -> None",
    summary="in place on dst: SUM, AVG, MIN, MAX or PRODUCT; unchanged elsewhere",
    inputs=_inputs,
    values=Values(
        _reduced,
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
        _CHANGED,
        evidence.AVERAGE_ALONE,
        Mistake(
            "dst sends, too. Each of the other n − 1 ranks sends once, and dst only receives:"
            " telling everyone the result is an all-reduce, which comes later.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_MESSAGES
                and any(op.rank == e.case.dst for op in e.trace.sends())
            ),
        ),
    ),
)


tree_reduce = Exercise(
    signature="tree_reduce(x: Tensor, dst: int, op: dist.ReduceOp) -> None",
    summary="the same as reduce on a tree: ⌈log₂ n⌉ rounds",
    inputs=_inputs,
    values=Values(_reduced, result="x", reduced=lambda c: c.n, magnitude=reduce.values.magnitude),
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
        _CHANGED,
        evidence.AVERAGE_ALONE,
        Mistake(
            "It is right with 2 and 4 ranks and wrong with 3 and 5, where some partners do not"
            " exist. Does each rank but dst still send once, and does none wait for a rank that is"
            " not there?",
            when=evidence.on_powers_of_two_only,
        ),
    ),
)
