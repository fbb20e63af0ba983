"""The benchmark of hung and mismatched ranks: ``check`` says of its programs what ``run`` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.hangs.catalogue import CLASSES, pairs_named
from benchmarks.hangs.declare import Program, both
from benchmarks.hangs.measure import judge
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher
from ranks.test_hangs import WAYS, simulated
from ranks.test_waits_in_torch import since_213
from tests.declarations import declare

ROOT = Path(__file__).resolve().parents[2]


def checked(program: Program, gives: Sequence[object]) -> str:
    """Return the word of a verdict on a program, as on an answer that should do as its twin."""
    exercise = declare(
        signature=f"{program.name}() -> object",
        summary="as the benchmark says",
        inputs=lambda draw: [draw.case("the only one")],
        expected=lambda case: list(gives),
        hints=("none",),
        world_sizes=(program.ranks,),
        allowed=None,
    )
    submission = Submission.from_function(program.function, program.name)
    verdict = Judge(default_launcher(), Settings(1)).judge(exercise, submission)
    return str(verdict.diagnosis or "")


#: Where these wait, an older torch does not show it, and only the time limit ends them.
SHOWN_SINCE_213 = {"torch_internals": [since_213]}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SHOWN_SINCE_213.get(name, ())) for name in CLASSES]
)
def test_run_check_and_simulate_say_the_same_of_every_program(name):
    """Unless the table says in words why one of them cannot."""
    said = []
    programs = [(pair, one) for pair in pairs_named([name]) for one in both([pair])]
    for pair, program in programs:
        expected = str(program.word or "")
        words = {
            "run": judge(program).word,
            "check": checked(program, pair.right.gives),
            "simulate": simulated(program),
        }
        for way, word in words.items():
            deviation = getattr(CLASSES[name], way)
            if word != expected and (deviation is None or word not in deviation.words):
                said.append(f"{way} says {word!r} of {program.name}, expected {expected!r}")
    assert said == []


def test_the_documentation_has_the_table_of_classes():
    text = (ROOT / "headcount" / "docs" / "hangs.md").read_text()
    for name, found in CLASSES.items():
        assert f"| {name.replace('_', ' ')} | {found.what} |" in text
        for way in WAYS:
            deviation = getattr(found, way)
            assert deviation is None or deviation.why in " ".join(text.split())
