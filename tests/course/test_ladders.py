"""Ladders of hints: from a question to the whole answer, which is run."""

from __future__ import annotations

import json
import re
import textwrap
from functools import lru_cache
from pathlib import Path

import pytest

from grader.course.chapters import discover
from grader.course.index import course_index
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher

EXERCISES = discover()

ROOT = Path(__file__).resolve().parents[2]


def code(name: str) -> str:
    """The code of the last hint, under the stub's header where the hint leaves it out."""
    _, _, block = EXERCISES[name].help.hints[-1].partition(":\n")
    block = textwrap.dedent(block) + "\n"
    begins = (f"def {name}(", f"class {name}", f"{name} = ")
    if any(f"\n{begin}" in f"\n{block}" for begin in begins):
        return block
    header, *_ = re.split(r'^    (?:"""|# Your code here)', course_index()[name].stub, flags=re.M)
    return header + textwrap.indent(block, "    ")


@lru_cache(maxsize=1)
def pasted(chapter: str) -> Submission:
    """A chapter in which all is done, with the last hints in place of the answers.

    What the chapter itself defines, before an answer or after it, is there as well.
    """
    notebook = json.loads((ROOT / "solutions" / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = {cell["id"]: cell for cell in notebook["cells"]}
    for exercise in course_index().chapters()[chapter]:
        cells[exercise.cell]["source"] = code(exercise.name)
    return Submission.from_bytes(json.dumps(notebook).encode(), "hints.ipynb", list(EXERCISES))


@pytest.mark.parametrize("name", EXERCISES)
def test_a_ladder_ends_with_the_whole_answer_and_says_so(name):
    exercise = EXERCISES[name]
    assert len(exercise.help.hints) >= 3
    assert "?" in exercise.help.hints[0]
    assert exercise.help.tells_all
    assert exercise.help.hints[-1].startswith("This is the whole answer")
    for hint in exercise.help.hints[:-1]:
        assert "\n" not in hint, "a rung before the last gives the plan in words"


@pytest.mark.slow
@pytest.mark.timeout(300)  # where every processor is busy, a compiler takes its time
@pytest.mark.parametrize("name", EXERCISES)
def test_the_whole_answer_of_the_last_hint_passes(name):
    exercise = EXERCISES[name]
    verdict = Judge(default_launcher(), Settings(7)).judge(exercise, pasted(exercise.chapter))
    assert verdict.passed, verdict.message
    assert verdict.score == exercise.points
