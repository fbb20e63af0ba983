"""``python -m grader new exercise`` writes an exercise that proves itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.cli.skeleton import write_exercise
from headcount.core.errors import RequestError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one chapter, which can be changed."""
    junk = shutil.ignore_patterns("__pycache__")
    for name in ("grader", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=junk)
    for folder in ("solutions", "notebooks"):
        (tmp_path / folder).mkdir()
        for path in (ROOT / folder).glob("09_*"):
            shutil.copy(path, tmp_path / folder)
    shutil.copytree(ROOT / "imgs", tmp_path / "imgs")
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("chapter", ["09_barrier", "31_something_new"])
def test_it_passes_the_proof_of_the_course_and_is_in_style(checkout, chapter):
    def call(*command, status=0):
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=checkout, env=environment,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr if status else done.stdout

    told = call("grader", "new", "exercise", "pass_on", "--chapter", chapter)
    *paths, last = told.splitlines()
    number = chapter[:2]
    assert last == f"Now: make notebooks ARGS={number} && make check ARGS=pass_on"
    assert all((checkout / path).is_file() for path in paths)
    assert len(paths) == 5
    if chapter != "09_barrier":
        say = f"{chapter} is not built yet: make notebooks ARGS={number}\n"
        assert call("tools.course", "pass_on", status=2) == say
    call("tools.notebooks", number)
    assert "5 claims, 1 times: 0 wrong" in call("tools.course", "pass_on")
    call("ruff", "check", paths[0])
    call("ruff", "format", "--check", paths[0])
    if chapter == "09_barrier":
        text = (checkout / "solutions" / "09_barrier.py").read_text()
        assert text.index("\ndef pass_on(") < text.index("# ## Summary")
        return  # its cells take long, and the tests of an exercise ask nothing of a chapter
    for folder in ("tests/toy", "headcount/tests", "tests/grader", "tests/course"):
        shutil.copytree(ROOT / folder, checkout / folder)
    for path in (ROOT / "tests").glob("*.py"):
        shutil.copy(path, checkout / "tests")
    asked = ("tests/grader/test_judge.py", "tests/course/test_ladders.py")
    assert "3 passed" in call("pytest", "-q", "-k", "pass_on and not toy", *asked)


TAKEN = "{} has another {}, or imports it; choose another name"


@pytest.mark.parametrize(
    "chapter, name, complaint",
    [
        ("broadcast", "pass_on", "a chapter is named like 02_broadcast, and not 'broadcast'"),
        ("09_barrier", "pass-on", "an exercise is named like tree_broadcast, and not 'pass-on'"),
        ("09_barrier", "gather", "there is an exercise gather already; choose another name"),
        ("09_barrier", "lambda", "lambda has a meaning in Python itself; choose another name"),
        ("09_barrier", "sum", "sum has a meaning in Python itself; choose another name"),
        ("09_barrier", "point", TAKEN.format("grader/course/chapters/ch09_barrier.py", "point")),
        ("09_barrier", "moved", TAKEN.format("grader/course/chapters/ch09_barrier.py", "moved")),
        ("31_new", "kinds", TAKEN.format("grader/course/chapters/ch31_new.py", "kinds")),
        ("09_barrier", "torch", TAKEN.format("solutions/09_barrier.py", "torch")),
        ("31_new", "check", TAKEN.format("solutions/31_new.py", "check")),
        (
            "09_barrier",
            "meet",
            "grader/course/answers/09_barrier/right/meet_batch.py is there already",
        ),
    ],
)
def test_a_name_that_will_not_do_is_refused_before_anything_is_written(
    checkout, chapter, name, complaint
):
    folder = checkout / "grader" / "course" / "answers" / "09_barrier" / "right"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meet_batch.py").touch()

    def texts():
        return {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}

    before = texts()
    with pytest.raises(RequestError) as caught:
        write_exercise(checkout, chapter, name, {"gather"})
    assert str(caught.value).startswith(complaint)
    assert texts() == before


def test_without_a_checkout_it_is_refused(tmp_path):
    with pytest.raises(RequestError, match="is no checkout of the course"):
        write_exercise(tmp_path, "09_barrier", "pass_on", ())
