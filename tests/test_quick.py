"""``make quick``: which tests a change concerns, and what comes of them."""

from __future__ import annotations

import subprocess

import pytest

from tools import quick

TESTS = {
    "tests/test_house.py": {"grader", "grader.launch"},
    "tests/test_traffic.py": {"grader.trace", "grader.trace.trace"},
    "tests/test_worlds.py": {"grader.trace.trace", "grader.launch.world", "grader.core.codec"},
    "tests/test_codec.py": {"grader.core.codec"},
}


def test_what_imports_a_module_and_little_else_comes_first():
    found = quick.nearest(["grader/trace/trace.py"], TESTS)
    assert found == ["tests/test_traffic.py", "tests/test_worlds.py", "tests/test_house.py"]


def test_a_test_that_has_changed_or_bears_the_name_comes_before_those():
    found = quick.nearest(["grader/core/codec.py", "tests/test_worlds.py"], TESTS)
    assert found == ["tests/test_worlds.py", "tests/test_codec.py", "tests/test_house.py"]


@pytest.mark.slow
def test_a_chapter_is_judged_with_its_answers():
    paths = [
        "solutions/02_broadcast.py",
        "grader/course/chapters/ch03_scatter_gather.py",
        "tests/rejected/11_ring_all_reduce/a.py",
        "grader/course/help/12_deadlocks.md",
        "grader/course/mistakes/30_capstone/a.py",
        "grader/exercise/limits.py",
        "docs/02_no.py",
    ]
    assert quick.chapters(paths) == ["02", "03", "11", "12", "30"]
    judged = quick.run("09")
    assert judged.status == 0, judged.output
    assert ": 0 wrong" in judged.output


def test_the_rules_of_the_house_hold_for_every_change():
    assert quick.nearest(["README.md"], TESTS) == ["tests/test_house.py"]


def test_a_change_is_what_differs_from_a_commit_and_what_git_does_not_know(tmp_path):
    def git(*words):
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name in ("kept.py", "edited.py", "gone.py", ".gitignore"):
        (tmp_path / name).write_text("ignored.py\n")
    git("add", ".")
    git("commit", "-m", "first")
    (tmp_path / "edited.py").write_text("x = 2\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new name.py").touch()
    (tmp_path / "ignored.py").touch()
    assert quick.changed("HEAD", tmp_path) == ["edited.py", "new name.py"]


@pytest.mark.exhaustive
def test_a_failure_is_a_failure_and_no_test_is_none(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_it():\n    assert 1 == 2\n")
    result = quick.run(str(tmp_path / "test_one.py"))
    assert result.status == 1
    assert "assert 1 == 2" in result.output
    (tmp_path / "test_slow.py").write_text(
        "import pytest\n@pytest.mark.slow\ndef test_it():\n    assert 1 == 2\n"
    )
    assert quick.run(str(tmp_path / "test_slow.py")).status == 5
