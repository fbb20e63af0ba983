"""``python -m grader grade``: a whole class, on the real command line, in real sandboxes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.classroom.exports import FORMATS
from grader.classroom.store import Store
from grader.exercise.verdict import Status
from grader.sandbox.sandboxes import missing
from tools import kills

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.slow]

HEAD = "import torch\nimport torch.distributed as dist\n\n\n"

RIGHT = """def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n


def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])
"""

SUBMISSIONS = {
    "right": RIGHT,
    "wrong": "def neighbours():\n    return 0, 0\n",
    "hangs": "def neighbours():\n    dist.recv(torch.ones(1), dist.get_rank() - 1)\n",
    "garbage": "def neighbours(:\n",
    "hostile": "import os\n\n\ndef neighbours():\n    os.kill(os.getppid(), 9)\n",
}


FOLDERS = ("--layout", "folders")


def grade(*arguments, environment=None, folder=ROOT):
    return subprocess.run(
        [sys.executable, "-m", "grader", "grade", *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


def hand_in(folder, submissions):
    for name, code in submissions.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "answers.py").write_text(HEAD + code)


def found(out):
    """What the results say, without times."""
    with Store(out, readonly=True) as store:
        return {
            entry.student: {
                name: (verdict.status, verdict.score, verdict.diagnosis, verdict.message)
                for name, verdict in store.verdicts(entry.key).items()
            }
            for entry in store.entries()
        }


#: One worker grades the class.
of_the_class = pytest.mark.xdist_group("of_the_class")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class, graded once: where it is, where the results are, what was said."""
    home = tmp_path_factory.mktemp("class")
    hand_in(home / "in", SUBMISSIONS)
    (home / "in" / "empty").mkdir()
    (home / "in" / "picture").mkdir()
    (home / "in" / "picture" / "answers.ipynb").write_bytes(b"\x89PNG\r\n")
    return home, grade(home / "in", "--out", home / "out", "--json", *FOLDERS)


@of_the_class
def test_everybody_gets_what_was_earned(graded):
    home, done = graded
    assert done.returncode == 0, done.stderr
    rows = found(home / "out")
    assert set(rows) == {*SUBMISSIONS, "empty", "picture"}
    assert {name: verdict[0] for name, verdict in rows["right"].items()} == {
        "neighbours": Status.PASSED,
        "who_am_i": Status.PASSED,
    }
    words = {student: row["neighbours"][2] for student, row in rows.items() if "neighbours" in row}
    assert words == {
        "right": None,
        "wrong": "wrong_value",
        "hangs": "exception",
        "garbage": "syntax_error",
        "hostile": "exception",
    }
    assert rows["empty"] == rows["picture"] == {}
    with Store(home / "out", readonly=True) as store:
        entries = {entry.student: entry for entry in store.entries()}
    assert "not text in UTF-8" in " ".join(entries["picture"].found)


@of_the_class
def test_the_summary_is_for_machines_too(graded):
    _, done = graded
    summary = json.loads(done.stdout)
    assert summary["submissions"] == 7
    assert summary["verdicts"]["passed"] == 2
    assert sorted(summary["nothing_handed_in"]) == ["empty", "picture"]
    assert summary["errors"] == []


@of_the_class
def test_only_what_has_changed_is_judged_again(graded, tmp_path):
    home, _ = graded
    shutil.copytree(home, tmp_path / "again")
    home = tmp_path / "again"
    before = found(home / "out")
    (home / "in" / "wrong" / "answers.py").write_text(HEAD + RIGHT)
    withdrawn = set(home.glob("out/*/hangs-*"))
    assert {path.suffix for path in withdrawn} == {".json", ".html"}
    shutil.rmtree(home / "in" / "hangs")
    request = [home / "in", "--out", home / "out", "--json", "--jobs", "1", *FOLDERS]
    done = grade(*request, "--drop", "hangs")
    summary = json.loads(done.stdout)
    # the file that is no notebook is looked at again: nothing was judged of it
    assert summary["judged"] + summary["kept"] == 5
    assert summary["kept"] >= 3
    after = found(home / "out")
    assert after.pop("wrong")["neighbours"][0] is Status.PASSED
    before.pop("wrong")
    before.pop("hangs")
    assert after == before
    assert not any(path.exists() for path in withdrawn)
    assert len(set(home.glob("out/results/*.json"))) == 6


BROADCAST = """

def broadcast(x, src):
    raise NotImplementedError
"""


@pytest.mark.timeout(400)  # two gradings, one after the other
def test_a_course_that_has_grown_judges_what_is_new_and_nothing_else(tmp_path):
    """An exercise is added that is defined in what has been handed in long before."""
    shutil.copytree(ROOT / "grader", tmp_path / "site" / "grader")
    chapter = tmp_path / "site" / "grader" / "course" / "chapters" / "ch02_broadcast.py"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    request = [tmp_path / "in", "--out", tmp_path / "out", "--jobs", "1", *FOLDERS]
    hand_in(tmp_path / "in", {"right": RIGHT + BROADCAST})

    chapter.rename(tmp_path / "later")
    done = grade(*request, environment=environment, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    before = found(tmp_path / "out")
    assert set(before["right"]) == {"neighbours", "who_am_i"}

    (tmp_path / "later").rename(chapter)
    done = grade(*request, environment=environment, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    after = found(tmp_path / "out")
    assert after["right"].pop("broadcast")[2] == "not_attempted"
    assert after == before
    with Store(tmp_path / "out", readonly=True) as store:
        # a verdict that has been found anew has one before it
        assert not any(store.earlier(entry.key) for entry in store.entries())


def test_a_log_says_what_happened_to_each(tmp_path):
    hand_in(tmp_path / "class", {name: SUBMISSIONS[name] for name in ("right", "wrong")})
    log = tmp_path / "grading.log"
    words = (tmp_path / "class", *FOLDERS, "--out", tmp_path / "results")
    done = grade(*words, "--exercises", "neighbours", "--log", log)
    assert done.returncode == 0, done.stderr
    said = [line.partition(": ")[2] for line in log.read_text().splitlines()]
    said = [re.sub(r"^(\w+)-[0-9a-f]+|[\d.]+ s$", r"\1", line) for line in said]
    assert [line for line in said if line.startswith("wrong")] == [
        "wrong is to be judged, and 0 of its verdicts are known",
        "wrong: neighbours to judge",
        "wrong: neighbours: wrong_value after ",
        "wrong: judged",
    ]
    assert any(line.startswith("right: neighbours: passed after") for line in said)
    full = grade(*words, "--log", "/dev/full")
    assert full.returncode == 0
    assert full.stderr.count("--log /dev/full cannot be written; the grading goes on") == 1
    refused = grade(*words, "--log", tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].endswith("Is a directory; name a file to write")


@pytest.mark.timeout(400)  # five gradings, one after the other
def test_a_killed_grading_goes_on_where_it_was(tmp_path):
    """``make kills`` does the same twenty times, with a larger class."""
    kills.hand_in(tmp_path / "in", 3)
    story = kills.disturb(tmp_path, 3, seed=7)
    assert story.complaints == []
    assert story.kills == 3


WRONG = "def neighbours():\n    return 0, 0\n"


@pytest.mark.timeout(200)
def test_a_download_of_blackboard_is_graded_by_student(tmp_path):
    """Of two attempts the newer is judged, the receipt's name is shown, and the row says it."""
    start = tmp_path / "HW1 download" / "HW1_jsmith_attempt_2024-03-03"
    start.parent.mkdir()
    for hour, code in (("11", RIGHT), ("17", WRONG)):
        Path(f"{start}-{hour}-00-00.txt").write_text("Name: John Smith (jsmith)\nAssignment: HW1\n")
        Path(f"{start}-{hour}-00-00_hw1.py").write_text(HEAD + code)
    done = grade(start.parent, "--out", tmp_path / "out", "--jobs", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert "1 student, laid out as blackboard (Blackboard's download)" in done.stderr
    assert json.loads(done.stdout)["layouts"] == {"blackboard": 1}
    (row,) = found(tmp_path / "out").values()
    assert {name: verdict[0] for name, verdict in row.items()} == {"neighbours": Status.FAILED}
    with Store(tmp_path / "out", readonly=True) as store:
        (entry,) = store.entries()
    assert (entry.student, entry.number) == ("John Smith", "jsmith")
    assert "the newest, of 2024-03-03 17:00:00, is graded" in entry.problems[0]
    (page,) = (tmp_path / "out" / "feedback").iterdir()
    assert "not graded: 2024-03-03 11:00:00" in page.read_text()


def test_a_class_one_folder_too_high_is_refused_and_nothing_is_written(tmp_path):
    for week, student in (("week1", "ann"), ("week1", "bob"), ("week2", "ann"), ("week2", "bob")):
        hand_in(tmp_path / "in" / week, {student: RIGHT})
    done = grade(tmp_path / "in", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{tmp_path}/in holds week1 and week2" in done.stderr
    assert "name the folder of the class" in done.stderr
    assert "--layout folders" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def stored_verdicts(out):
    try:
        with Store(out, readonly=True) as store:
            return [(e.key, name) for e in store.entries() for name in store.verdicts(e.key)]
    except Exception:  # it is just being made
        return []


@of_the_class
def test_an_export_takes_no_torch(graded, tmp_path):
    """It is done in a tenth of the time that importing torch takes."""
    home, _ = graded
    code = (
        "import sys; sys.argv = ['-m']; from grader.cli.main import main;"
        " print(main(sys.stdin.read().split('\\n')), 'torch' in sys.modules)"
    )
    for form in FORMATS:
        request = ["export", str(home / "out"), "--format", form, "--to", str(tmp_path / form)]
        done = subprocess.run(
            [sys.executable, "-c", code], input="\n".join(request),
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == "0 False\n", done.stderr
        unhanded = "no grade for empty: nothing was handed in\n"
        assert (unhanded in done.stderr) == (form == "canvas")
    assert (tmp_path / "csv").read_bytes() == (home / "out" / "gradebook.csv").read_bytes()


@of_the_class
def test_a_disk_that_is_full_loses_no_verdict_and_shows_no_traceback(graded, tmp_path):
    """Results on a file system of 150 kB: too small for pages, large enough for verdicts."""
    home, _ = graded
    count = (
        "import sys; sys.argv = ['-m']; import tests.classroom.test_grade as t;"
        " print(len(t.stored_verdicts(t.Path('/small/out'))))"
    )
    command = (
        f"{shlex.quote(sys.executable)} -m grader grade {shlex.quote(str(home))}/in"
        f" --layout folders --out /small/out --jobs 1; echo $?;"
        f" {shlex.quote(sys.executable)} -c {shlex.quote(count)}"
    )
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", "150000", "--tmpfs", "/small", "--", "sh", "-c",
         command],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    status, stored = map(int, done.stdout.split())
    assert status == 1
    assert stored > 0
    assert "No space left" in done.stderr or "full" in done.stderr
    assert "grade again" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_bubblewrap_it_says_what_to_install(tmp_path):
    hand_in(tmp_path / "in", {"right": RIGHT})
    request = [tmp_path / "in", "--out", tmp_path / "out", *FOLDERS]
    done = grade(*request, environment={**os.environ, "PATH": ""})
    assert done.returncode == 2
    assert "apt install bubblewrap" in done.stderr
    assert "--sandbox none" in done.stderr
    assert not (tmp_path / "out").exists()


def test_without_a_sandbox_it_warns(tmp_path):
    hand_in(tmp_path / "in", {"right": RIGHT})
    request = [tmp_path / "in", "--out", tmp_path / "out", "--jobs", "1", *FOLDERS]
    done = grade(*request, "--sandbox", "none")
    assert done.returncode == 0, done.stderr
    assert "no sandbox" in done.stderr
    page = (tmp_path / "out" / "class.html").read_text()
    assert "without a sandbox" in page
    # what was found so is not kept for a grading that promises one
    done = grade(*request)
    assert done.returncode == 0, done.stderr
    assert "without a sandbox" not in (tmp_path / "out" / "class.html").read_text()
    with Store(tmp_path / "out", readonly=True) as store:
        (entry,) = store.entries()
        assert set(store.earlier(entry.key)) == {"neighbours", "who_am_i"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--out", "{results}"], "nowhere"),
        ([".", "--out", "pyproject.toml"], "pyproject.toml"),
        ([".", "--out", "{results}", "--jobs", "0"], "whole number"),
        ([".", "--out", "{results}", "--seed", "20261128"], "20 digits or more"),
        (["."], "--out"),
    ],
)
def test_a_wrong_request_is_one_line(arguments, message, tmp_path):
    results = tmp_path / "results"
    done = grade(*(argument.format(results=results) for argument in arguments))
    assert done.returncode in (1, 2)
    assert not results.exists()
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


# Modules that a student handed in beside the answer. --------------------------------

SPREAD = HEAD + "from ranks import left, right\n\ndef neighbours():\n    return left(), right()\n"

RANKS = HEAD + (
    "def left():\n    return (dist.get_rank() - 1) % dist.get_world_size()\n\n"
    "def right():\n    return (dist.get_rank() + 1) % dist.get_world_size()\n"
)


def spread(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_an_answer_imports_what_its_student_handed_in_beside_it_and_nothing_else(tmp_path):
    home, out = tmp_path / "in", tmp_path / "out"
    spread(home / "whole", answers=SPREAD, ranks=RANKS)
    spread(home / "deeper", hw__answers=SPREAD, hw__ranks=RANKS)
    spread(home / "alone", answers=SPREAD)
    spread(home / "above", hw__answers=SPREAD, ranks=RANKS)
    # the second download of Canvas, and a file where the grader itself is started
    (home / "twice").mkdir()
    (home / "twice" / "answers.py").write_text(SPREAD)
    (home / "twice" / "ranks.py").write_text("1 / 0")
    (home / "twice" / "ranks-1.py").write_text(RANKS)
    spread(tmp_path, ranks=RANKS)
    request = [home, "--out", out, *FOLDERS]
    done = grade(*request, folder=tmp_path, environment=_elsewhere())
    assert done.returncode == 0, done.stderr
    rows = {student: row["neighbours"] for student, row in found(out).items()}
    passed = {student for student, row in rows.items() if row[0] is Status.PASSED}
    assert passed == {"whole", "deeper", "twice"}
    for student in ("alone", "above"):
        assert "no ranks.py was handed in beside answers.py" in rows[student][3]
    # a helper that changes is a submission that changes
    (home / "whole" / "ranks.py").write_text(RANKS.replace("+ 1", "+ 2"))
    summary = json.loads(
        grade(*request, "--json", folder=tmp_path, environment=_elsewhere()).stdout
    )
    assert (summary["judged"], summary["kept"]) == (1, 4)
    status, *_, message = found(out)["whole"]["neighbours"]
    assert status is Status.FAILED, message


def _elsewhere():
    """The environment of a grader that is started in another folder than the course's."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_notebook_as_browsers_save_it_and_an_answer_in_a_class(tmp_path):
    cells = [{"cell_type": "code", "source": HEAD + RIGHT, "metadata": {}, "outputs": []}]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    for student, name in (("safari", "hw.ipynb.json"), ("edge", "hw.ipynb.txt")):
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / name).write_text(json.dumps(notebook))
    wrapped = HEAD + "class Solution:\n    def neighbours(self):\n        return 0, 0\n"
    spread(tmp_path / "in" / "wrapped", hw=wrapped)
    done = grade(tmp_path / "in", "--out", tmp_path / "out", "--jobs", "1", *FOLDERS)
    assert done.returncode == 0, done.stderr
    rows = found(tmp_path / "out")
    for student in ("safari", "edge"):
        assert rows[student]["neighbours"][0] is Status.PASSED
    assert rows["wrapped"] == {}
    with Store(tmp_path / "out", readonly=True) as store:
        (entry,) = [entry for entry in store.entries() if entry.student == "wrapped"]
    assert "neighbours: it is defined inside class Solution, line 6" in " ".join(entry.found)
