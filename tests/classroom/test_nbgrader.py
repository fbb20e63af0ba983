"""A chapter in a course of nbgrader: real commands, a real gradebook, beside our own grading."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grader.api import Points, catalogue
from grader.exercise.verdict import ExerciseVerdict, Status
from tools import notebooks
from tools.chapter import Chapter

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "02_broadcast"
ASKED = {name: e for name, e in catalogue().items() if e.chapter == CHAPTER}

#: One worker makes the course; the limits are for a machine that does much else.
pytestmark = [pytest.mark.xdist_group("nbgrader"), pytest.mark.slow, pytest.mark.timeout(600)]

needs_nbgrader = pytest.mark.skipif(
    importlib.util.find_spec("nbgrader") is None, reason="nbgrader is not installed"
)

#: Right except on eight ranks, so that a part of the cases is passed whatever the seed.
NOT_EIGHT = """
    if dist.get_world_size() == 8:
        raise ValueError("eight")
    for dst in range(dist.get_world_size()):
        if dst != src and dist.get_rank() in (src, dst):
            sends = dist.get_rank() == src
            dist.send(x, dst) if sends else dist.recv(x, src)
"""


def command(*arguments, cwd, module=True):
    """Run a Python module, or code; what it prints."""
    done = subprocess.run(
        [sys.executable, *(["-m"] if module else []), *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, timeout=300, check=False,
        # nothing of the user's own Jupyter; and progress is on, as it is for a user
        env={
            **{k: v for k, v in os.environ.items() if k != "GRADER_PROGRESS"},
            # nbgrader looks for the commands of its own environment
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(cwd),
            "JUPYTER_CONFIG_DIR": str(cwd / "jupyter"),
            "IPYTHONDIR": str(cwd / "ipython"),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def graded_cells(notebook):
    return {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook.cells
        if "nbgrader" in cell.metadata
    }


def hand_in(course, student, change):
    """What a student makes of the released notebook."""
    notebook = nbformat.read(course / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    change(graded_cells(notebook))
    folder = course / "submitted" / student / CHAPTER
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{CHAPTER}.ipynb")


def right(cells):
    path = ROOT / "solutions" / f"{CHAPTER}.py"
    solved = Chapter(path, {name: e.points for name, e in ASKED.items()}).solved_edition()
    for name, cell in graded_cells(solved).items():
        cells[name].source = cell.source


def wrong(cells):
    cell = cells["broadcast-answer"]
    head, stub, tail = cell.source.partition("    raise NotImplementedError")
    assert stub
    cell.source = head + NOT_EIGHT + tail
    # a locked cell that somebody has changed all the same
    cells["sync_parameters"].source = "1.0"


def untouched(cells):
    assert {f"{name}-answer" for name in ASKED} | set(ASKED) == set(cells)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of nbgrader whose one assignment is graded."""
    course = tmp_path_factory.mktemp("course")
    assert notebooks.main(["--nbgrader", str(course), CHAPTER]) == 0
    command("nbgrader", "generate_assignment", CHAPTER, cwd=course)
    for change in (right, wrong, untouched):
        hand_in(course, change.__name__, change)
    done = command("nbgrader", "autograde", CHAPTER, cwd=course)
    # the one warning that there should be is on the cell that was changed
    warnings = [line for line in done.stderr.splitlines() if "AutogradeApp | WARNING" in line]
    assert len(warnings) == 1, done.stderr
    assert "'checksum' for cell sync_parameters has changed" in warnings[0]
    return course


def gradebook(course):
    """The points of every student and exercise in nbgrader's gradebook."""
    code = f"""
import json
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({{
        submission.student.id: {{
            grade.name: [grade.auto_score, grade.max_score, grade.needs_manual_grade]
            for grade in submission.notebooks[0].grades
        }}
        for submission in book.assignment_submissions({CHAPTER!r})
    }}))
"""
    return json.loads(command("-c", code, cwd=course, module=False).stdout)


@needs_nbgrader
def test_nbgraders_release_is_the_students_edition(course):
    released = nbformat.read(course / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    ours = nbformat.read(ROOT / "notebooks" / f"{CHAPTER}.ipynb", as_version=4)
    assert [cell.source for cell in released.cells] == [
        cell.source.replace("](../imgs/", "](imgs/") for cell in ours.cells
    ]
    shown = {path.name for path in (course / "release" / CHAPTER / "imgs").iterdir()}
    linked = re.findall(r"\]\(\.\./imgs/([^)]+)\)", "".join(cell.source for cell in ours.cells))
    assert linked
    assert shown == {*linked}
    for cell, mine in zip(released.cells, ours.cells, strict=True):
        marks = dict(cell.metadata.get("nbgrader", {}))
        marks.pop("checksum", None)
        marks.pop("cell_type", None)
        assert marks == mine.metadata.get("nbgrader", {})


@needs_nbgrader
def test_nbgraders_gradebook_says_what_our_grading_says(course):
    command("grader", "grade", "submitted", "--out", "results", "--jobs", "2", cwd=course)
    ours = {}
    for path in (course / "results" / "results").glob("*.json"):
        student = path.name.partition("-")[0]
        ours[student] = {
            one["name"]: [one["score"], one["max_score"], False]
            for one in json.loads(path.read_text())["exercises"]
        }
    theirs = gradebook(course)
    assert theirs == ours
    assert theirs["right"] == {name: [e.points, e.points, False] for name, e in ASKED.items()}
    assert 0 < theirs["wrong"]["broadcast"][0] < 1
    assert theirs["wrong"]["sync_parameters"][0] == 0
    assert {score for score, _, _ in theirs["untouched"].values()} == {0}

    command("nbgrader", "export", "--to", "theirs.csv", cwd=course)
    command("grader", "export", "results", "--format", "nbgrader", "--to", "ours.csv", cwd=course)
    with (course / "theirs.csv").open() as one, (course / "ours.csv").open() as other:
        exported, exporting = csv.DictReader(one), csv.DictReader(other)
        assert exported.fieldnames == exporting.fieldnames
        mine = {row["first_name"] or row["last_name"]: row for row in exporting}
        rows = list(exported)
    assert {row["student_id"] for row in rows} == set(ours) == set(mine)
    for row in rows:
        for column in ("raw_score", "score", "max_score"):
            assert float(row[column]) == float(mine[row["student_id"]][column])


@needs_nbgrader
def test_feedback_holds_the_verdict(course):
    command("nbgrader", "generate_feedback", CHAPTER, "--student", "wrong", cwd=course)
    page = (course / "feedback" / "wrong" / CHAPTER / f"{CHAPTER}.html").read_text()
    assert "ValueError: eight" in page
    path = course / "autograded" / "wrong" / CHAPTER / f"{CHAPTER}.ipynb"
    outputs = graded_cells(nbformat.read(path, as_version=4))["broadcast"].outputs
    assert [output.output_type for output in outputs] == ["execute_result"]
    # the verdict stands below the check of the answer, and is not judged or shown again
    assert "<strong>In general:</strong>" in page
    html = outputs[0].data["text/html"]
    assert "<strong>In general:</strong>" not in html
    assert re.search(r"<strong>broadcast</strong> [\d.]+ of 1 point</div>", html)


@needs_nbgrader
def test_a_class_is_nobodys_progress(course):
    assert not list(course.rglob("progress.json"))


@needs_nbgrader
def test_every_notebook_is_valid_for_nbgrader():
    paths = [
        *sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")),
        *sorted((ROOT / "solutions").glob("[0-9][0-9]_*.ipynb")),
    ]
    code = """
import json, sys
from nbgrader.nbgraderformat import read
found = []
for path in sys.argv[1:]:
    cells = read(path, as_version=4).cells
    marks = [cell.metadata.nbgrader for cell in cells if "nbgrader" in cell.metadata]
    found.append({mark.grade_id: mark.get("points") for mark in marks})
print(json.dumps(found))
"""
    done = command("-c", code, *paths, cwd=ROOT, module=False)
    assert done.stderr == ""
    chapters = catalogue().chapters()
    for path, marks in zip(paths, json.loads(done.stdout), strict=True):
        points = {exercise.name: exercise.points for exercise in chapters[path.stem]}
        # cells that a learner writes and that earn nothing
        practice = {name: None for name in marks if name.startswith("practice-")}
        answers = {f"{name}-answer": None for name in points}
        assert marks == {**points, **answers, **practice}, path


@needs_nbgrader
def test_what_could_not_be_judged_stops_the_autograding_of_a_submission():
    """nbgrader would take any other text for full marks, and an error for none."""
    code = """
import sys
from nbformat.v4 import new_code_cell, new_output
from nbgrader.utils import determine_grade
marks = {"grade": True, "solution": False, "points": 2.0}
for text in sys.argv[1:]:
    out = new_output("execute_result", {"text/plain": text}, execution_count=1)
    cell = new_code_cell("", outputs=[out], metadata={"nbgrader": marks})
    try:
        print(determine_grade(cell)[0])
    except KeyError:
        print("refused")
"""
    read = {
        (Status.PASSED, 2.0): "2.0",
        (Status.FAILED, 0.125): "0.125",
        (Status.FAILED, 0.0): "0.0",
        (Status.ERROR, 0.0): "refused",
        (Status.SKIPPED, 0.0): "refused",
    }
    texts = [
        repr(Points(ExerciseVerdict("broadcast", CHAPTER, status, score, 2.0)))
        for status, score in read
    ]
    done = command("-c", code, *texts, cwd=ROOT, module=False)
    assert done.stdout.split() == list(read.values())
