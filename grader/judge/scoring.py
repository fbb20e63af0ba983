"""What an answer earns: its share of the cases that ask for something, and the point of it all.

A case *asks for nothing* if a function that does nothing would pass it: there is one
rank in an exercise about communication, the tensors are empty, a shift is by 0.  Such a
case is run and must pass, and costs as much as any other if it does not; but it earns
nothing.  Which cases these are follows from the oracle, so that no exercise has to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from grader.core.values import tensors_in
from grader.core.verdict import CaseVerdict, Diagnosis
from grader.course.cases import Case
from grader.course.exercise import Exercise
from grader.trace.trace import Trace

__all__ = ["asks", "missed_point", "score"]

#: These cost the whole exercise.
_WORTHLESS = frozenset({Diagnosis.FORBIDDEN_CALL, Diagnosis.TAMPERING, Diagnosis.NOT_ATTEMPTED})


def asks(exercise: Exercise, case: Case) -> bool:
    """Whether a function that does nothing would fail a case.

    It would pass where every rank is to hold nothing but what it was given, zeros, or
    nothing at all, and the record of a run without a single message proves no mistake;
    where the argument has to be refused, which a function that always raises does; and
    on one rank, where there is nobody to communicate with.
    """
    if case.n == 1 and _communicates(exercise):
        return False
    expected = list(exercise.expected(case))
    if any(_is_new(exercise, case, rank, expected[rank]) for rank in case.ranks):
        return True
    silence = Trace(((),) * case.n)
    return exercise.proof is not None and exercise.proof(case, silence) is not None


def _communicates(exercise: Exercise) -> bool:
    """Whether ranks need each other: not if all is worked out by each rank alone."""
    most = max(exercise.world_sizes)
    if most == 1:
        return False
    bounds = [
        (limit.relation, limit.asked(case))
        for case in (exercise.cases(0, most) if exercise.limits else [])
        for limit in exercise.limits
    ]
    return not bounds or set(bounds) != {("=", 0)}


def _is_new(exercise: Exercise, case: Case, rank: int, expected: Any) -> bool:
    """Whether a rank is to hold something that it was not given."""
    if expected == {"raises": True}:
        return False
    own = (
        tensors_in(list(case.arguments(rank)))
        if exercise.result is None
        else tensors_in(case.columns[exercise.result][rank])
    )
    return _adds(expected, list(own))


def _adds(value: Any, own: Sequence[torch.Tensor]) -> bool:
    """Whether a value is more than nothing, zeros and copies of one's own tensors."""
    if isinstance(value, torch.Tensor):
        return bool(value.any()) and not any(
            t.dtype == value.dtype and torch.equal(t, value) for t in own
        )
    if isinstance(value, Mapping):
        return any(_adds(entry, own) for entry in value.values())
    if isinstance(value, (list, tuple)):
        # a number in a list says where it stands, be it 0
        return any(_adds(entry, own) or isinstance(entry, (int, float)) for entry in value)
    return bool(value)


def missed_point(cases: Iterable[CaseVerdict]) -> CaseVerdict | None:
    """The first case that shows that an answer misses the point of its exercise."""
    return next((case for case in cases if case.misses_point), None)


def score(exercise: Exercise, inputs: Iterable[Case], cases: Sequence[CaseVerdict]) -> float:
    """The points that a failed answer earns.

    Args:
        exercise: the exercise.
        inputs: the cases of its world sizes.
        cases: the verdicts on them, on the limits, and on simulated ranks.
    """
    if any(case.diagnosis in _WORTHLESS for case in cases):
        return 0.0
    asking = {(case.n, case.name) for case in inputs if asks(exercise, case)}
    sizes = {n for n, _ in asking}
    earned = possible = 0
    for case in cases:
        # a limit asks for something where a case of its size does
        earns = (
            case.simulated
            or (case.world_size, case.name) in asking
            or (case.is_limit and case.world_size in sizes)
        )
        earned += earns and case.passed
        possible += earns or not case.passed
    share = earned / possible if possible else 0.0
    return exercise.points * (min(share, 0.5) if missed_point(cases) else share)
