"""Chapter 07: many values become one, on every rank."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import OPS, Case, Draw, Kind, demo, reductions, tags
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, reduced_in_place
from grader.exercise.limits import combined, messages, point, sent_elements
from headcount.core.verdict import Diagnosis


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


# In two stages. ---------------------------------------------------------------------


def _with_a_transposed_one(draw: Draw) -> Iterator[Case]:
    for name, kind in reductions(draw.n):
        x = draw.per_rank(kind, name)
        yield draw.case(f"{name} of {kind}", x=x, op=OPS[name], transposed=False)
    if draw.n >= 4:  # where it shows as well how much is sent
        kind = Kind(torch.int64, (4, 3))
        x = draw.per_rank(kind, "SUM")
        yield draw.case(f"SUM of {kind}, transposed", x=x, op=OPS["SUM"], transposed=True)


def _call(answer: Callable[..., Any], x: torch.Tensor, op: Any, transposed: bool) -> Any:
    """Call the answer, which finds the elements of a transposed matrix in another order."""
    return answer(x.t() if transposed else x, op)


def _share(c: Case) -> int:
    """Return the elements of the largest share of x."""
    x: torch.Tensor = c.x[0]
    return -(-x.numel() // c.n)


def _most(c: Case) -> int:
    """Return the elements that a rank sends at most in two stages.

    Halving sends all of x once more where the number of ranks is no power of two.
    """
    folded = c.x[0].numel() if c.n & (c.n - 1) else 0
    return 2 * (c.n - 1) * _share(c) + folded


def _too_much(test: Callable[[Evidence], bool]) -> Callable[[Evidence], bool]:
    """Make a test of the runs that send too much, whatever else is wrong."""

    def seen(e: Evidence) -> bool:
        over = tuple(one for one in e.failed if one.diagnosis is Diagnosis.TOO_MANY_BYTES)
        return bool(over) and test(Evidence(over, e.source))

    return seen


def _gathers_more(e: Evidence) -> bool:
    """Return whether a rank gives more than a share to an all-gather."""
    calls = [op for operations in e.trace.operations for op in operations]
    return any(op.kind == "all_gather" and e.trace.given(op) > _share(e.case) for op in calls)


all_reduce_sharded = Exercise(
    signature="all_reduce_sharded(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; a reduce-scatter, then an all-gather, for any length",
    inputs=_with_a_transposed_one,
    adapter=_call,
    values=reduced_in_place(),
    traffic=TrafficRules(
        limits=(point(sent_elements("≤", _most)),),
        least=combined,
        allowed=frozenset({"reduce_scatter", "all_gather"}),
    ),
    mistakes=(
        evidence.AVERAGE_ALONE,
        Mistake(
            "Everything goes through one rank, as in all_reduce_rooted, and that rank sends the"
            " most. Cut x into n pieces, and let each rank collect and reduce one of them.",
            when=_too_much(lambda e: evidence.common_end(e) is not None),
        ),
        Mistake(
            "Every message is all of x, so every rank did all the work. Cut x into n pieces: rank j"
            " needs only piece j of the others, and hands out only that one when it is reduced.",
            when=_too_much(
                lambda e: (
                    bool(e.trace.sends())
                    and all(op.count == e.case.x[0].numel() > 1 for op in e.trace.sends())
                )
            ),
        ),
        Mistake(
            "More was gathered than each rank's share, so every rank did all the work. Gather only"
            " the piece that the reduce-scatter has given you.",
            when=_too_much(_gathers_more),
        ),
    ),
)
