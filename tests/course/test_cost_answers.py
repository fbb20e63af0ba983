"""Whatever is returned where a number is asked for: a verdict on it, and no fault of ours."""

from __future__ import annotations

import pytest

from grader.api import catalogue
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher

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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_strange_answer_is_wrong_and_nothing_else(name, subtests):
    for returned in RETURNED:
        with subtests.test(returned):
            source = f"import torch\n\n\ndef {name}(*given, **named):\n    return {returned}\n"
            submission = Submission.from_bytes(source.encode(), "answer.py", catalogue())
            judge = Judge(default_launcher(), Settings(1, first_failure=True))
            verdict = judge.judge(catalogue()[name], submission)
            assert verdict.status is Status.FAILED
            assert verdict.score == 0
            assert verdict.hint
