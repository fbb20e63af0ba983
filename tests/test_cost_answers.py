"""Whatever is returned where a number is asked for: a verdict on it, and no fault of ours."""

from __future__ import annotations

import pytest

from grader.api import catalogue
from grader.core.compare import compare
from grader.core.verdict import Status
from grader.course.exercise import Evidence, JudgedCase
from grader.course.hints import choose_hint
from grader.judge.judge import Judge, Settings
from grader.launch.launchers import default_launcher
from grader.submission.submission import Submission
from grader.trace.trace import Trace

#: The exercises that ask for a formula.
FUNCTIONS = [
    name for name, one in catalogue().items() if one.chapter in ("13_cost_models", "16_scale_math")
]

RETURNED = (
    "None",
    "True",
    "'0.001'",
    "float('nan')",
    "float('-inf')",
    "10**400",
    "-(10**400)",
    "1j",
    "[]",
    "[1.0]",
    "{}",
    "(float('nan'), float('inf'))",
    "(10**400, -(10**400))",
    "('a', 'b')",
    "((1.0, 2.0), (3.0, 4.0))",
    "torch.tensor([1.0, 2.0])",
)


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_strange_answer_is_wrong_and_nothing_else(name, returned):
    source = f"import torch\n\n\ndef {name}(*given, **named):\n    return {returned}\n"
    submission = Submission.from_bytes(source.encode(), "answer.py", catalogue())
    judge = Judge(default_launcher(), Settings(1, first_failure=True))
    verdict = judge.judge(catalogue()[name], submission)
    assert verdict.status is Status.FAILED
    assert verdict.score == 0
    assert verdict.hint


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_mistake_hides_behind_another(name):
    """Who makes one of them everywhere is told of that one, where it first shows."""
    exercise = catalogue()[name]
    for mistake in exercise.mistakes:
        if mistake.gives is None:
            continue
        for gives in _alternatives(mistake):
            for seed in range(3):
                told = _told(exercise, gives, seed)
                alike = {mistake.hint, "nothing is wrong"}
                if mistake.when is not None:
                    # the source tells it from mistakes that give the same numbers
                    alike |= {
                        other.hint
                        for other in exercise.mistakes
                        if any(_same(exercise, gives, one, seed) for one in _alternatives(other))
                    }
                assert told in alike


def _alternatives(mistake):
    if mistake.gives is None:
        return ()
    return mistake.gives if isinstance(mistake.gives, tuple) else (mistake.gives,)


def _same(exercise, gives, others, seed):
    """Whether two mistakes make the same of every case."""
    pairs = [(gives(case), others(case)) for case in exercise.cases(seed, 1)]
    return all(
        one == other
        or (one and other and compare(one[0], other[0], relative=exercise.values.relative) is None)
        for one, other in pairs
    )


def _told(exercise, gives, seed):
    judged = []
    for case in exercise.cases(seed, 1):
        right = exercise.values.expected(case)
        given = gives(case)
        if given is None:
            given = right
        fault = compare(right[0], given[0], relative=exercise.values.relative)
        word = None if fault is None else fault.diagnosis
        judged.append(JudgedCase(case, word, given, None, Trace(((),))))
    evidence = Evidence(tuple(judged))
    if evidence.failed:
        return choose_hint(exercise, evidence.diagnosis, evidence)
    return "nothing is wrong"
