"""Ladders of hints: from a question to the whole answer, which is run."""

from __future__ import annotations

import textwrap

import pytest

from grader.course.chapters import discover
from grader.course.exercise import Exercise
from grader.judge.judge import Judge, Settings
from grader.launch.launchers import default_launcher
from grader.submission.submission import Submission
from tools import course

EXERCISES = discover()

#: What the first cell of a chapter imports.
IMPORTS = """
from __future__ import annotations
import math
import statistics
import time
import torch
import torch.distributed as dist
from torch import Tensor, nn
"""


#: Chapters whose answers stand on code that the chapter gives, and on pieces of earlier chapters.
ON_THE_CHAPTER = {"30_capstone"}


def code(exercise: Exercise) -> str:
    """The code of the last hint, under the exercise's header where the hint leaves it out."""
    _, _, block = exercise.hints[-1].partition(":\n")
    block = textwrap.dedent(block) + "\n"
    begins = (f"def {exercise.name}(", f"class {exercise.name}", f"{exercise.name} = ")
    if any(f"\n{begin}" in f"\n{block}" for begin in begins):
        return block
    return f"def {exercise.signature}:\n" + textwrap.indent(block, "    ")


def whole(chapter: str) -> str:
    """A file with the answer of each exercise of a chapter, as the last hints have it."""
    ours = (one for one in EXERCISES.values() if one.chapter == chapter)
    given = chapter in ON_THE_CHAPTER and course.solved(chapter)
    return IMPORTS + (given or "") + "\n".join(map(code, ours))  # a later definition wins


@pytest.mark.parametrize("name", EXERCISES)
def test_a_ladder_ends_with_the_whole_answer_and_says_so(name):
    exercise = EXERCISES[name]
    assert len(exercise.hints) >= 3
    assert "?" in exercise.hints[0]
    assert exercise.tells_all
    assert exercise.hints[-1].startswith("This is the whole answer")
    for hint in exercise.hints[:-1]:
        assert "\n" not in hint, "a rung before the last gives the plan in words"


@pytest.mark.slow
@pytest.mark.timeout(300)  # where every processor is busy, a compiler takes its time
@pytest.mark.parametrize("name", EXERCISES)
def test_the_whole_answer_of_the_last_hint_passes(name):
    exercise = EXERCISES[name]
    source = whole(exercise.chapter)
    submission = Submission.from_bytes(source.encode(), "hints.py", list(EXERCISES))
    verdict = Judge(default_launcher(), Settings(7)).judge(exercise, submission)
    assert verdict.passed, verdict.message
