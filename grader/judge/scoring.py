"""The score of a failed answer: its share of the cases that earn points.

A case *earns no points* if a function that does nothing would pass it: there is one rank in an
exercise about communication, the tensors are empty, or a shift is by 0.  Such a case is run and
must pass, and costs as much as any other if it does not.  Which cases these are follows from the
oracle, so that no exercise has to declare it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from grader.exercise.cases import Case
from grader.exercise.compare import compare
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import CaseVerdict
from headcount.core.values import tensors_in
from headcount.core.verdict import Gravity
from headcount.trace.trace import Trace

__all__ = ["earns_points", "missed_point", "passed_share", "score", "share_limit"]

#: The largest share of the points that an answer earns if it misses the point of its exercise, and
#: if it hangs at any size.  One that is only slow is some use, and one that hangs is none.
_MISSES_POINT, _HANGS = 0.5, 0.25


def earns_points(exercise: Exercise, case: Case) -> bool:
    """Return whether a function that does nothing would fail a case.

    It would pass where every rank has to hold only what it was given, zeros, or nothing at all,
    and the record of a run without a message proves no mistake; where the argument has to be
    refused, as a function that always raises does; and on one rank, which has no other rank to
    communicate with.
    """
    if case.n == 1 and _communicates(exercise):
        return False
    expected = list(exercise.values.expected(case))
    if any(_is_new(exercise, case, rank, expected[rank]) for rank in case.ranks):
        return True
    silence = Trace(((),) * case.n)
    return exercise.traffic.proof is not None and exercise.traffic.proof(case, silence) is not None


def _communicates(exercise: Exercise) -> bool:
    """Return whether ranks have to communicate, and not each compute its result alone."""
    most = max(exercise.world_sizes)
    if most == 1:
        return False
    bounds = [
        (limit.relation, limit.asked(case))
        for case in (exercise.cases(0, most) if exercise.traffic.limits else [])
        for limit in exercise.traffic.limits
        if limit.applies(case)
    ]
    return not bounds or set(bounds) != {("=", 0)}


def _is_new(exercise: Exercise, case: Case, rank: int, expected: Any) -> bool:
    """Return whether a rank has to hold something that it was not given."""
    if expected == {"raises": True}:
        return False
    own = (
        tensors_in(list(case.arguments(rank)))
        if exercise.values.result is None
        else tensors_in(case.columns[exercise.values.result][rank])
    )
    return _holds_more_than(expected, list(own))


def _holds_more_than(value: Any, own: Sequence[torch.Tensor]) -> bool:
    """Return whether a value is more than nothing, zeros and copies of the rank's tensors."""
    if isinstance(value, torch.Tensor):
        # compared as an answer is: a NaN is the same as every other
        return bool(value.any()) and not any(compare(value, t) is None for t in own)
    if isinstance(value, Mapping):
        return any(_holds_more_than(entry, own) for entry in value.values())
    if isinstance(value, (list, tuple)):
        # in a list, even the number 0 is information
        return any(
            _holds_more_than(entry, own) or isinstance(entry, (int, float)) for entry in value
        )
    return bool(value)


def missed_point(cases: Iterable[CaseVerdict]) -> CaseVerdict | None:
    """Return the first case that shows that an answer misses the point of its exercise."""
    return next((case for case in cases if case.misses_point), None)


def score(exercise: Exercise, inputs: Iterable[Case], cases: Sequence[CaseVerdict]) -> float:
    """Return the points that a failed answer earns.

    Args:
        exercise: the exercise.
        inputs: the cases of its world sizes.
        cases: the verdicts on them, on the limits, and on simulated ranks.
    """
    return exercise.points * min(passed_share(exercise, inputs, cases), share_limit(cases))


def passed_share(exercise: Exercise, inputs: Iterable[Case], cases: Sequence[CaseVerdict]) -> float:
    """Return the share of the cases passed, of those that earn points; as :func:`score`."""
    inputs = list(inputs)
    earning = {(case.n, case.name) for case in inputs if earns_points(exercise, case)}
    sizes, drawn = {n for n, _ in earning}, {case.n for case in inputs}
    earned = possible = 0
    for case in cases:
        # a limit earns points where a case of its size does
        earns = (
            case.world_size not in drawn  # of the growth, on many simulated ranks
            or (case.world_size, case.name) in earning
            or (case.is_limit and case.world_size in sizes)
        )
        earned += earns and case.passed
        possible += earns or not case.passed
    return earned / possible if possible else 0.0


def share_limit(cases: Sequence[CaseVerdict]) -> float:
    """Return the largest share of the points that an answer with these verdicts may earn."""
    if any(case.diagnosis is not None and case.diagnosis.worthless for case in cases):
        return 0.0
    if any(case.gravity == Gravity.HANGS for case in cases):
        return _HANGS
    return _MISSES_POINT if missed_point(cases) else 1.0
