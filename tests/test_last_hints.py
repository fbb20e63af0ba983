"""The last hint of an exercise is the whole answer: it says so, and it passes."""

from __future__ import annotations

import re

import pytest

from grader.exercises import discover
from grader.judge import Judge, Settings
from grader.submission import Submission
from grader.worlds.launch import default_launcher

CATALOGUE = discover()

#: The chapters whose last hints are complete function bodies.
CHAPTERS = ("00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "11")

EXERCISES = [e.name for e in CATALOGUE.values() if e.chapter.startswith(CHAPTERS)]

#: Own functions of the same chapter that an answer goes on from.
WITH = {"all_to_all_uneven": ("all_to_all",), "ring_all_reduce": ("ring_schedule",)}


def body(name: str) -> str:
    """The indented lines of the last hint."""
    last = CATALOGUE[name].hints[-1]
    before, _, code = last.partition(":\n")
    assert "This is the whole answer" in before
    assert all(line.startswith("    ") for line in code.splitlines())
    return code


def answer(name: str) -> str:
    header = f"def {CATALOGUE[name].signature}:\n"
    return "\n\n".join([*(answer(other) for other in WITH.get(name, ())), header + body(name)])


@pytest.mark.parametrize("name", EXERCISES)
def test_the_last_hint_is_a_whole_answer_that_passes(name):
    preamble = (
        "from __future__ import annotations\nimport torch\nimport torch.distributed as dist\n\n"
    )
    source = f"{preamble}{answer(name)}\n".encode()
    submission = Submission.from_bytes(source, "answer.py", CATALOGUE)
    verdict = Judge(default_launcher(), Settings(seed=7)).judge(CATALOGUE[name], submission)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize("name", EXERCISES)
def test_a_ladder_has_a_question_a_plan_and_the_whole(name):
    hints = CATALOGUE[name].hints
    assert CATALOGUE[name].tells_all
    assert len(hints) >= 3
    assert "?" in hints[0]
    # the rungs before the last do not hold it
    code = re.sub(r"\s+", "", body(name))
    assert all(code not in re.sub(r"\s+", "", hint) for hint in hints[:-1])
