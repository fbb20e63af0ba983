"""Submissions that attack the grader: what each one tries, and that it fails.

Every file of ``tests/hostile/<family>/`` is handed in as a student's, and says
at its top which promise of ``docs/security.md`` it attacks, which exercise it
pretends to answer and what the verdict has to be.  An attack that finds a way
prints ``BREACH`` or returns a right answer.  ``control_*.py`` do the harmless
thing that is nearest to their family's attacks, and keep their points.  What
several attacks need stands once, in ``tests/hostile/_<part>.py``; those that
name the part in their head are handed in behind it, as one file.

In the same order, and so in the same sandbox, an honest answer to another
exercise is judged after the attack: that is harder than in a fresh sandbox,
which the next fixture of the family and its control get anyway.
"""

from __future__ import annotations

import ast
import json
import time
from dataclasses import asdict, replace

import pytest

from grader.classroom.grading import grade
from grader.classroom.messages import ExerciseJudged, GradingRequest, Limits, SubmissionPlanned
from grader.course.chapters import discover
from grader.exercise.catalogue import Catalogue
from grader.exercise.verdict import Status
from grader.sandbox.sandboxes import missing
from tools.attacks import HOSTILE, Attack, attacks

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}"),
    pytest.mark.slow,
]

#: Short, but a loaded machine must still be able to judge the honest answer.
LIMITS = Limits(call=4.0, exercise=30.0, submission=90.0, memory=2 << 30)

#: Nothing that runs in a sandbox may ever say this.
SECRET = "canary-7d1f0c52e9"

#: The cheapest exercise with messages that comes after those that are attacked.
HONEST = b"""
import torch, torch.distributed as dist

def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for k in range((n - 1).bit_length()):
        request = dist.isend(torch.zeros(1), (rank + 2**k) % n)
        dist.recv(torch.zeros(1), (rank - 2**k) % n)
        request.wait()
"""


FIXTURES = attacks()

ALL = discover()

#: Exercises that are judged on few ranks: the honest answer's, since what an attack leaves behind
#: they find as well as eight do, and those that are weighed on two.
SMALLER = ("barrier", "ShardedAdamW", "FullySharded")

FEW = Catalogue(
    [replace(one, world_sizes=(1, 2, 3)) if one.name in SMALLER else one for one in ALL.values()]
)

#: Families that use up what ranks share, of which eight need more than three.
GREEDY = ("memory", "processes")


def submit(*files, limits=LIMITS, exercises=FEW):
    """What is told of one submission: the plan, the verdicts by name, seconds."""
    told = []
    started = time.monotonic()
    order = GradingRequest("student", files, "digest", 20260101, limits)
    grade(order, exercises, told.append)
    (planned,) = [one for one in told if isinstance(one, SubmissionPlanned)]
    verdicts = {one.verdict.name: one.verdict for one in told if isinstance(one, ExerciseJudged)}
    return planned, verdicts, time.monotonic() - started


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Things outside of the sandbox; afterwards they are as they were."""
    monkeypatch.setenv("GRADER_CANARY", SECRET)
    for name in ("results/alice.json", "submissions/bob/02_broadcast.py", "home/.ssh/id"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(f"{name}: {SECRET}\n")
    before = snapshot(tmp_path)
    yield tmp_path
    assert snapshot(tmp_path) == before


def snapshot(folder):
    return {
        path: (path.stat().st_mtime_ns, path.stat().st_mode, path.is_file() and path.read_bytes())
        for path in sorted(folder.rglob("*"))
    }


def everything_said(planned, verdicts):
    """All text that came out of the sandbox, but for the answers as they were handed in."""
    found = [asdict(one) for one in verdicts.values()]
    for run in (one["questioned"] for one in found):
        if run is not None:
            del run["code"]
    return json.dumps([asdict(planned), *found], default=str)


def in_two_groups():
    """Two workers are busy with them at most: worlds of 8 processes run in each."""
    for i, fixture in enumerate(FIXTURES):
        mark = pytest.mark.xdist_group(f"hostile {i % 2}")
        yield pytest.param(fixture, id=str(fixture), marks=mark)


@pytest.mark.parametrize("fixture", list(in_two_groups()))
def test_an_attack_fails_and_harms_nobody(fixture, outside):
    attack = ("answer.py", fixture.source)
    # the newest file counts where two define the same
    limits = replace(LIMITS, exercise=float(fixture.seconds or LIMITS.exercise))
    exercises = ALL if fixture.path.parent.name in GREEDY else FEW
    planned, verdicts, seconds = submit(
        ("honest.py", HONEST), attack, limits=limits, exercises=exercises
    )
    verdict = verdicts[fixture.exercise]
    said = everything_said(planned, verdicts)

    words = fixture.diagnosis.split(" or ") if fixture.diagnosis else [None]
    assert str(verdict.status) == fixture.verdict, verdict.message
    assert verdict.diagnosis in words, verdict.message
    full = verdict.max_score if fixture.verdict == "passed" else 0
    scores = fixture.score.split(" or ") if fixture.score else [full]
    some = "some" in scores and 0 < verdict.score < verdict.max_score
    assert some or verdict.score in [float(one) for one in scores if one != "some"]
    assert fixture.says in verdict.message
    assert SECRET not in said
    assert "BREACH" not in said
    assert len(said) < 4 << 20
    assert verdicts["barrier"].status is Status.PASSED, verdicts["barrier"].message
    # the call that is at work when time is up may take five times its processor time by the clock
    assert verdict.seconds < limits.exercise + 5 * limits.call
    assert seconds < LIMITS.submission


def deep(opening, closing, depth=100_000):
    return (opening * depth + closing * depth).encode()


def notebook(**fields):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, **fields}).encode()


def code(source):
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}


#: Files that are hard to read, and what is said of them; None where they are
#: read, and ... where that depends on Python's version.
UNREADABLE = {
    "open.py": (b"(" * (32 << 20), "too many nested parentheses"),
    "deep.py": (b"x = " + deep("[", "]"), "too many nested parentheses"),
    "minus.py": (b"x = " + b"-" * 1_000_000 + b"1", ...),
    "lambda.py": (b"x = " + b"lambda:" * 100_000 + b"1", ...),
    "dots.py": (b"x = a" + b".a" * 1_000_000, ...),
    "calls.py": (b"x = f" + b"()" * 200_000, ...),
    "elif.py": (b"if 0: pass\n" + b"elif 0: pass\n" * 20_000, ...),
    "indented.py": (b"".join(b" " * i + b"if 1:\n" for i in range(3_000)), ""),
    "sum.py": (b"x = 1" + b"+1" * 1_000_000, ...),
    "number.py": (b"x = " + b"9" * 5_000_000, ""),
    "power.py": (b"x = 9 ** 9 ** 9 ** 9", None),
    "text.py": (b"x = 'a' * 10 ** 12", None),
    "nulls.py": (b"\0" * 1_000_000, ""),
    "null.py": (b"x = 1\0\nimport os\n", ""),
    "lines.py": (b"\n" * (20 << 20) + b"(", ""),
    "names.py": (b"".join(b"x%d = 1\n" % i for i in range(5_000)), None),
    "latin.py": (b"x = '\xe4\xff'", "is not text in UTF-8"),
    "wide.py": ("x = 1".encode("utf-16"), "is not text in UTF-8"),
    "surrogate.py": (b"x = '\\ud800'", None),
    "coding.py": (b"# -*- coding: unicode_escape -*-\nx = 1", None),
    "empty.py": (b"", "is empty"),
    "large.py": (b"#" * (33 << 20), "is larger than 32 MB"),
    "deep.ipynb": (deep("[", "]"), "does not hold JSON"),
    "deeper.ipynb": (deep('{"a":', "}"), "does not hold JSON"),
    "number.ipynb": (b'{"nbformat": ' + b"4" * 100_000 + b', "cells": []}', ""),
    "list.ipynb": (b"[]", "has no nbformat"),
    "cells.ipynb": (notebook(cells=[code("x = 1")] * 20_000), None),
    "odd.ipynb": (notebook(cells=[code({}), code([1, None]), code(7), 3, None, []]), None),
    "magic.ipynb": (notebook(cells=[code("%" * 100_000 + "\n!" * 1000)]), None),
    "nothing.ipynb": (notebook(cells=None), "has no list of cells"),
    "archive.py": (b"PK\x03\x04" + bytes(range(256)) * 100, "is not text in UTF-8"),
    "program.txt": (b"x = 1", "is neither a .py file"),
}


@pytest.mark.xdist_group("hostile 1")
@pytest.mark.parametrize("half", [0, 1])
def test_a_file_that_is_hard_to_read_costs_itself_only(outside, half):
    """Every file is read in a process of its own, so one order can hold as many as have remarks."""
    asked = {label: UNREADABLE[label] for label in [*UNREADABLE][half::2]}
    files = [(label, data) for label, (data, _) in asked.items()]
    planned, verdicts, seconds = submit(*files, ("honest.py", HONEST))
    assert list(verdicts) == ["barrier"]
    assert verdicts["barrier"].status is Status.PASSED
    assert all(len(note) < 2000 for note in planned.notes)
    for label, (_, said) in asked.items():
        notes = [note for note in planned.notes if note.startswith(label)]
        if said is not ...:
            assert bool(notes) == (said is not None), (label, notes)
            assert said is None or said in notes[0]
    assert seconds < LIMITS.submission


@pytest.mark.xdist_group("hostile 1")
@pytest.mark.parametrize(
    "label", ["torch.py", "grader.py", "../../torch.py", "/etc/x.py", "a\nb.py"]
)
def test_the_name_of_a_file_is_data(label, outside):
    """Nothing is imported from where a submission lies: it lies nowhere."""
    planned, verdicts, _ = submit((label, HONEST))
    assert verdicts["barrier"].status is Status.PASSED
    assert planned.notes == ()


#: Names of modules that the grader and torch import, inside a rank and outside.
SHADOWED = (
    *(
        "torch",
        "numpy",
        "random",
        "json",
        "socket",
        "msgspec",
        "cloudpickle",
        "psutil",
        "sitecustomize",
    ),
    *(
        "grader",
        "headcount/src/headcount/core/codec",
        "headcount/src/headcount/rank/recorder",
        "headcount/src/headcount/server/process",
    ),
    *("torch/distributed", "submission", "_posixsubprocess"),
)


@pytest.mark.xdist_group("hostile 0")
def test_files_beside_an_answer_that_shadow_modules_gain_nothing(outside):
    """They run in ranks, if they are imported, and what a rank has imported before stays."""
    shadow = (
        "import builtins, os, pathlib\n"
        "builtins.ran = [*getattr(builtins, 'ran', []), f'ran {__name__}']\n"
        f"if pathlib.Path({str(outside)!r}).exists(): builtins.ran += ['BREACH']\n"
        "if 'GRADER_CANARY' in os.environ: builtins.ran += ['BREACH']\n"
        "def neighbours(): return 7, 7\n"
        "def __getattr__(name): return neighbours\n"
    ).encode()
    names = [name.replace("/", ".") for name in SHADOWED]
    attack = "".join(f"try:\n    import {name}\nexcept ImportError:\n    pass\n" for name in names)
    attack += "import helper\ndef neighbours():\n    print(ran, helper)\n    return -1, -1\n"
    planned, verdicts, _ = submit(
        ("honest.py", HONEST),
        *((f"{name}.py", shadow) for name in (*SHADOWED, "helper")),
        ("answer.py", attack.encode()),
    )
    said = everything_said(planned, verdicts)
    assert verdicts["neighbours"].diagnosis == "wrong_value"
    assert verdicts["barrier"].status is Status.PASSED
    ran = {name for name in (*names, "helper") if f"'ran {name}'" in said}
    # what a rank has not imported, and what is no module of Python's or the grader's
    assert "helper" in ran
    assert ran <= {"helper", "psutil", "sitecustomize"}
    assert "BREACH" not in said


@pytest.mark.xdist_group("hostile 0")
def test_the_canary_sings_where_there_is_no_sandbox(outside):
    """The fixture that looks for secrets finds them if nothing stops it."""
    attack = Attack.read(HOSTILE / "reading" / "environment.py")
    told = []
    order = GradingRequest(
        "student", (("answer.py", attack.source),), "digest", 1, replace(LIMITS, sandbox=False)
    )
    grade(order, ALL, told.append)
    assert "BREACH" in json.dumps([asdict(one) for one in told], default=str)


def test_every_family_has_a_control_and_there_are_enough_attacks():
    families = {fixture.path.parent.name for fixture in FIXTURES}
    controlled = {f.path.parent.name for f in FIXTURES if f.is_control}
    assert families == controlled
    assert all((f.verdict == "passed") >= f.is_control for f in FIXTURES)
    attacks = [f for f in FIXTURES if not f.is_control]
    assert len(attacks) >= 50


def test_every_part_is_used_and_nothing_that_attacks_share_is_written_twice():
    parts = set(HOSTILE.glob("*.py"))
    assert {path for fixture in FIXTURES for path in fixture.files[:-1]} == parts
    seen = {}
    for path in [*parts, *(fixture.path for fixture in FIXTURES)]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and len(node.body) > 1:
                seen.setdefault(ast.dump(node), []).append(f"{path.name}: {node.name}")
    assert [where for where in seen.values() if len(where) > 1] == []
