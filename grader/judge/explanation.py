"""The message of a failed verdict: the gravest fault, others independent of it, their price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.exercise.cases import Case
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import CaseVerdict
from grader.judge.assessment import ranks
from grader.judge.scoring import missed_point, passed_share, share_limit
from headcount.core.verdict import Diagnosis, Gravity

__all__ = ["explain"]


def explain(
    exercise: Exercise, failed: CaseVerdict, inputs: Sequence[Case], cases: Sequence[CaseVerdict]
) -> str:
    """Return what is wrong: the gravest fault, others that are independent of it, and their price.

    Args:
        exercise: the exercise.
        failed: the gravest failure.
        inputs: the cases of its world sizes.
        cases: the verdicts on them, on the limits, and on simulated ranks.
    """
    if failed.diagnosis is Diagnosis.NOT_ATTEMPTED:
        return "not written yet"
    faults = [_describe_fault(exercise, failed)]
    missed = missed_point(cases)
    hangs = failed.gravity == Gravity.HANGS
    price = "" if hangs else ", so it earns at most half its points"
    if missed is failed:
        faults.append(f"{_describe_missed_point(exercise, missed, failed, cases)}{price}.")
    faults += [
        f"It also fails on {_describe_fault(exercise, other, ': ')}"
        for other in _independent_faults(failed, cases)
        if not other.misses_point
    ]
    if missed is not None and missed is not failed:
        faults.append(f"{_describe_missed_point(exercise, missed, failed, cases)}{price}.")
    if hangs and passed_share(exercise, inputs, cases) > share_limit(cases) > 0:
        faults.append("An answer that hangs earns at most a quarter of its points.")
    return "\n".join(faults)


def _describe_fault(exercise: Exercise, case: CaseVerdict, between: str = ", ") -> str:
    """Return what is wrong with a case, and where."""
    where = _describe_place(exercise, case)
    # a plain function without an argument has one case only
    between = ": " if exercise.parameters and not case.bounds else between
    return f"{where}{between if where else ''}{case.message}"


def _describe_place(exercise: Exercise, case: CaseVerdict) -> str:
    """Return the number of ranks and the name of a case, and the call of a plain function."""
    # a plain function is called on one rank, which is not worth saying
    world = ranks(case.world_size, case.simulated) if exercise.world_sizes != (1,) else ""
    # the message on a limit names it already; without an argument there is one input only
    name = case.name if exercise.parameters and not case.bounds else ""
    return ", ".join(part for part in (world, name, case.call) if part)


def _independent_faults(lead: CaseVerdict, cases: Sequence[CaseVerdict]) -> Iterator[CaseVerdict]:
    """Yield faults that are no consequence of the one that leads the verdict, the gravest first.

    The failures of one world size have mostly one reason: an answer that hangs on some inputs may
    end with wrong values on others.  So the gravest failure stands for its size.  A size at which
    nothing fails as gravely as at another has a fault that the graver one does not explain.
    """
    sizes: dict[tuple[bool, int], list[CaseVerdict]] = {}
    for case in cases:
        sizes.setdefault((case.simulated, case.world_size), []).append(case)
    worst = [max(found, key=lambda case: case.gravity) for found in sizes.values()]
    explained = {0, lead.gravity}
    for case in sorted(worst, key=lambda case: -case.gravity):
        if case.gravity not in explained:
            explained.add(case.gravity)
            yield case


def _describe_missed_point(
    exercise: Exercise, missed: CaseVerdict, failed: CaseVerdict, cases: Sequence[CaseVerdict]
) -> str:
    """Return that an answer misses the point of the exercise, and by what if that is not told."""
    if missed is failed and not missed.bounds:
        return "This is the point of the exercise"
    if not missed.bounds and _fail_in_same_line(missed, failed):
        where = _describe_place(exercise, missed)
        return f"It fails in the same line on {where}. That case is the point of the exercise"
    if not missed.bounds:
        # two wrong values may have one reason
        same = missed.diagnosis is failed.diagnosis
        begin = "Nor is it right" if same else "It also fails"
        fault = _describe_fault(exercise, missed, ": ")
        return f"{begin} on {fault}. That case is the point of the exercise"
    point = f"{missed.bounds[0].missed}: that is the point of this exercise"
    if missed is failed and any(case.minor for case in cases):
        return f"The sums are right, but {point}"
    if all(case.may_be_right for case in cases):
        return f"Right values, but {point}"
    if missed is failed:
        return "This is the point of the exercise"
    are = "is" if missed.bounds[0].measured == 1 else "are"
    also = f"On {ranks(missed.world_size, missed.simulated)} there {are} also"
    return f"{also} {missed.bounds[0].missed}: that is the point of this exercise"


def _fail_in_same_line(one: CaseVerdict, other: CaseVerdict) -> bool:
    """Return whether two cases fail in the same line and for the same reason."""
    same = (one.site, one.diagnosis) == (other.site, other.diagnosis)
    return one.site is not None and _ended_early(one) and same


def _ended_early(case: CaseVerdict) -> bool:
    """Return whether a case has ended without a result."""
    return case.diagnosis is not None and (
        case.diagnosis.precedence < Diagnosis.WRONG_TYPE.precedence
    )
