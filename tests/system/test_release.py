"""What students get: the course without its solutions, and a look before it goes out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.cli.main import main
from grader.cli.release import Leak, release
from grader.course.chapters import discover
from headcount.core.errors import RequestError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(tmp_path):
    """A checkout to spoil."""
    home = tmp_path / "course"
    for name in ("docs", "grader", "imgs", "notebooks", "solutions"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE", "Makefile", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, home / name)
    shutil.copy(ROOT / "requirements.lock", home)
    (home / "tools").mkdir()
    for name in ("install.py", "update.py"):
        shutil.copy(ROOT / "tools" / name, home / "tools")
    shutil.copytree(ROOT / "tools" / "lab", home / "tools" / "lab")
    return home


def test_the_bundle_is_the_course_without_solutions(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "grader", "release", str(tmp_path / "bundle")],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "files, without solutions" in done.stdout
    bundle = tmp_path / "bundle"
    assert not {"solutions", "tests", ".git"} & {path.name for path in bundle.iterdir()}
    # the instructor's questions have answers; an assistant finds rules for a student's work
    assert not list(bundle.rglob("teaching.md"))
    assert "Write, complete or correct the body" in (bundle / "AGENTS.md").read_text()
    assert not list(bundle.rglob("students.md"))
    assert "what a class is given has no solutions" in (bundle / "README.md").read_text()
    assert not list(bundle.rglob("__pycache__"))
    # mistakes are where hints come from; right answers are for nobody
    answers = bundle / "grader" / "course" / "answers"
    assert (answers / "02_broadcast" / "broadcast_root_zero.py").is_file()
    assert not list(answers.rglob("right"))
    # what make lab and make update need, and nothing else of the tools
    assert {path.name for path in (bundle / "tools").iterdir()} == {
        "install.py",
        "lab",
        "update.py",
    }
    started = subprocess.run(
        [sys.executable, "-m", "tools.lab", "--version"],
        cwd=bundle, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    assert (bundle / "requirements.lock").is_file()
    names = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (bundle / "notebooks").iterdir()} == names
    checked = subprocess.run(
        [sys.executable, "-m", "grader", "check", "notebooks/02_broadcast.ipynb", "--json"],
        cwd=bundle, env={**os.environ, "PYTHONPATH": str(bundle)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    words = {one["diagnosis"] for one in json.loads(checked.stdout)["exercises"]}
    assert words == {"not_attempted"}


#: Prints the hints of a course: as ``hint`` reads them, and those of the declarations.
_HINTS = """
import json
from grader.course.chapters import discover
from grader.course.help import help_of
from grader.course.index import course_index
told = {one.name: help_of(one.chapter)[one.name] for one in course_index().values()}
declared = {one.name: one.help for one in discover().values()}
print(json.dumps([
    {name: [one.hints, one.tells_all] for name, one in known.items()} for known in (told, declared)
]))
"""


def test_whole_answers_can_be_left_out(tmp_path, capsys):
    """Index and declarations agree, and have every hint but the last ones."""
    course, bundle = discover(), tmp_path / "bundle"
    assert main(["release", str(bundle), "--without-answers"]) == 0
    said = capsys.readouterr().out
    assert "files, without solutions and without the hints that are whole answers" in said
    done = subprocess.run(
        [sys.executable, "-c", _HINTS], cwd=bundle, env={**os.environ, "PYTHONPATH": str(bundle)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert not list(bundle.glob("grader/course/answers/[0-9]*"))
    index, declared = json.loads(done.stdout)
    assert index == declared
    assert index.keys() == course.keys()
    for name, (hints, tells_all) in index.items():
        assert not tells_all
        assert hints[:-1] == list(course[name].help.hints[:-1])
        assert hints[-1] == (
            "The last hint, which is the whole answer, is not in this edition of the course."
        )


def test_a_whole_answer_between_fences_is_left_out_as_a_whole(course, tmp_path):
    page = course / "grader" / "course" / "help" / "04_reduce.md"
    text = page.read_text()
    begin, end = text.index("## Hint 3"), text.index("\n## ", text.index("## Hint 3"))
    fenced = "## Hint 3\n\nSo:\n\n```python\n# add up\ndist.reduce(x, dst)\n```\n\nThat is all.\n"
    page.write_text(text[:begin] + fenced + text[end:])
    release(course, tmp_path / "bundle", discover(), answers=False)
    left = (tmp_path / "bundle" / page.relative_to(course)).read_text()
    whole = "The last hint, which is the whole answer, is not in this edition of the course."
    assert f"## Hint 3\n\n{whole}\n\n{text[end:].lstrip().partition(chr(10))[0]}\n" in left
    assert "add up" not in left
    assert "That is all" not in left


def test_a_whole_answer_that_is_told_elsewhere_is_a_leak(course, tmp_path):
    answer = discover()["tree_broadcast"].help.hints[-1]
    with (course / "docs" / "verdicts.md").open("a") as page:
        page.write(f"\nFor example:\n\n{answer}\n")
    with pytest.raises(Leak, match=r"docs/verdicts\.md has the whole answer to tree_broadcast"):
        release(course, tmp_path / "bundle", discover(), answers=False)


def change(path, edit):
    notebook = json.loads(path.read_text())
    edit(notebook["cells"])
    path.write_text(json.dumps(notebook))


def solved(course):
    shutil.copy(course / "solutions" / "04_reduce.ipynb", course / "notebooks" / "04_reduce.ipynb")


def half_solved(course):
    def edit(cells):
        cell = next(c for c in cells if "def broadcast" in "".join(c["source"]))
        cell["source"] = "".join(cell["source"]).replace(
            "    raise NotImplementedError",
            "    rank = dist.get_rank()\n    raise NotImplementedError",
        )

    change(course / "notebooks" / "02_broadcast.ipynb", edit)


def half_a_class(course):
    def edit(cells):
        cell = next(c for c in cells if "class BucketedDDP" in "".join(c["source"]))
        cell["source"] = "".join(cell["source"]).replace(
            "        raise NotImplementedError", "        return self.module(*args)", 1
        )

    change(course / "notebooks" / "15_data_parallel.ipynb", edit)


def run_before(course):
    def edit(cells):
        next(c for c in cells if c["cell_type"] == "code")["execution_count"] = 1

    change(course / "notebooks" / "02_broadcast.ipynb", edit)


def told_in_a_page(course):
    source = (course / "solutions" / "02_broadcast.py").read_text()
    block = source.partition("### BEGIN SOLUTION\n")[2].partition("### END SOLUTION")[0]
    with (course / "docs" / "verdicts.md").open("a") as page:
        page.write("\nOne way:\n\n" + block.replace("    ", "  "))


def marked(course):
    with (course / "docs" / "verdicts.md").open("a") as page:
        page.write("\n### BEGIN SOLUTION\n")


def linked(course):
    (course / "imgs" / "more").symlink_to(course / "solutions")


def lost(course):
    (course / "notebooks" / "05_all_gather.ipynb").unlink()


def misplaced(course):
    folder = course / "grader" / "course" / "answers" / "02_broadcast"
    shutil.move(folder / "right" / "broadcast_flat.py", folder)


def without_a_stub(course):
    def edit(cells):
        cells[:] = [c for c in cells if "def gather" not in "".join(c["source"])]

    change(course / "notebooks" / "03_scatter_gather.ipynb", edit)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (solved, "reduce is more than a stub"),
        (half_solved, "broadcast is more than a stub"),
        (half_a_class, "BucketedDDP is more than a stub"),
        (run_before, "has been run"),
        (told_in_a_page, "has a solution of 02_broadcast"),
        (marked, "has the marks of a solution"),
        (linked, "imgs/more is a link"),
        (lost, "05_all_gather.ipynb is missing"),
        (misplaced, "02_broadcast/broadcast_flat.py is a right answer"),
        (without_a_stub, "has no stub of gather"),
    ],
)
def test_a_leak_is_named_and_nothing_is_written(course, tmp_path, spoil, message):
    spoil(course)
    with pytest.raises(Leak) as caught:
        release(course, tmp_path / "bundle", discover())
    assert message in str(caught.value)
    assert not (tmp_path / "bundle").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["course"]


def test_an_empty_folder_is_filled_and_another_one_is_not(course, tmp_path):
    (tmp_path / "empty").mkdir()
    assert release(course, tmp_path / "empty", discover()) > 100
    with pytest.raises(RequestError, match="not empty"):
        release(course, tmp_path / "empty", discover())
    with pytest.raises(RequestError, match="what is to be released"):
        release(course, course / "grader" / "bundle", discover())


def test_a_bundle_cannot_be_released_again(course, tmp_path):
    shutil.rmtree(course / "solutions")
    with pytest.raises(RequestError, match="no checkout"):
        release(course, tmp_path / "bundle", discover())
