"""Hints and advice, read from the text beside a chapter."""

from __future__ import annotations

import pytest

from grader.course.chapters import discover
from grader.course.help import FOLDER
from grader.errors import DeclarationError
from grader.exercise.help import Help, read_help
from headcount.core.verdict import Diagnosis

TEXT = """\
# broadcast

## Hint 1

Only one rank has
something to send. Which?

## Hint 2

This is the whole answer:

    if rank == src:

        dist.send(x, dst)

## wrong_type

It works in place.

# broadcast, tree_broadcast

## deadlock

Every send needs
its receive.
"""


def test_hints_are_numbered_and_advice_stands_under_its_diagnosis(tmp_path):
    path = tmp_path / "02_broadcast.md"
    path.write_text(TEXT)
    deadlock = {Diagnosis.DEADLOCK: "Every send needs its receive."}
    assert read_help(path) == {
        "broadcast": Help(
            (
                "Only one rank has something to send. Which?",
                "This is the whole answer:\n    if rank == src:\n\n        dist.send(x, dst)",
            ),
            {Diagnosis.WRONG_TYPE: "It works in place.", **deadlock},
        ),
        "tree_broadcast": Help((), deadlock),
    }


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("Hello.\n", ":1: a text needs a heading"),
        ("# broadcast\n\nHello.\n", ":1: a text needs a heading"),
        ("## Hint 1\n\nHello.\n", ":1: Hint 1 needs a text below it, and `# EXERCISE` above"),
        ("# broadcast\n\n## Hint 1\n\n## Hint 2\n", ":3: Hint 1 needs a text below it"),
        ("# broadcast\n\n## Hint 2\n\nHello.\n", ":3: Hint 1 of broadcast comes next, not Hint 2"),
        ("# broadcast\n\n## sad\n\nHello.\n", ":3: 'sad' is neither a hint nor a diagnosis"),
        (
            "# broadcast\n\n## timeout\n\nA.\n\n## timeout\n\nB.\n",
            ":7: broadcast has advice on timeout already",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path, text, complaint):
    path = tmp_path / "help.md"
    path.write_text(text)
    with pytest.raises(DeclarationError) as caught:
        read_help(path)
    assert complaint in str(caught.value)


def test_all_help_is_of_an_exercise():
    """A heading that is misspelt would help nobody."""
    course = discover()
    for chapter in FOLDER.glob("*.md"):
        names = {name for name, one in course.items() if one.chapter == chapter.stem}
        assert read_help(chapter).keys() == names


def test_an_exercise_without_a_hint_is_named(tmp_path, monkeypatch):
    package = tmp_path / "bare"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ch00_bare.py").write_text(
        "from tests.declarations import declare\n"
        'f = declare(signature="f() -> int", summary="one", inputs=list, expected=list)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DeclarationError, match=r"f has no hint.*course/help/00_bare\.md"):
        discover("bare")
