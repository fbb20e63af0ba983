"""Chapter 07: many values become one, on every rank."""

from collections.abc import Iterator

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import OPS, Case, Draw, demo, reductions, tags
from grader.exercise.declaration import Exercise, TrafficRules, reduced_in_place
from grader.exercise.limits import calls, combined, given, messages, point


def _inputs(draw: Draw) -> Iterator[Case]:
    for name, kind in reductions(draw.n):
        yield draw.case(f"{name} of {kind}", x=draw.per_rank(kind, name), op=OPS[name])


all_reduce_rooted = Exercise(
    signature="all_reduce_rooted(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; reduce to one rank, then broadcast from it",
    inputs=_inputs,
    values=reduced_in_place(),
    traffic=TrafficRules(limits=(messages("=", lambda c: 2 * (c.n - 1)),), least=combined),
    demo=lambda n: demo(n, x=tags(n, 2), op=OPS["SUM"]),
    mistakes=(
        *evidence.BUFFER_RACES,
        evidence.AVERAGE_ALONE,
    ),
)


def _share(c: Case) -> int:
    """Return the elements of the largest share of x, cut by elements or by rows."""
    x: torch.Tensor = c.x[0]
    if x.dim() == 0 or not x.numel():
        return 1
    row = x.numel() // len(x)
    return max(-(-x.numel() // c.n), -(-len(x) // c.n) * row)


all_reduce_sharded = Exercise(
    signature="all_reduce_sharded(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; a reduce-scatter, then an all-gather, for any length",
    inputs=_inputs,
    values=reduced_in_place(),
    traffic=TrafficRules(
        # to gather everything and reduce it on every rank is to share no work, and a
        # reduce-scatter beside it changes nothing
        limits=(
            point(
                calls({"reduce_scatter", "send"}, "≥", lambda c: c.n * (1 < c.n <= c.x[0].numel()))
            ),
            point(given("all_gather", "≤", _share)),
        ),
        least=combined,
        allowed=frozenset({"reduce_scatter", "all_gather"}),
    ),
    mistakes=(evidence.AVERAGE_ALONE,),
)
