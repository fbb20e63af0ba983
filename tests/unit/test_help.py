"""Hints and advice, read from the text beside a chapter."""

from __future__ import annotations

import pytest

from grader.course.chapters import discover
from grader.course.help import FOLDER
from grader.errors import DeclarationError
from grader.exercise.help import Help, read_help, sections
from grader.report.html import hints_html
from grader.report.text import hints_report
from headcount.core.verdict import Diagnosis
from headcount.report import plain

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
    "text, shown",
    [
        ("One idea\nhere.\n\nAnother\nidea.", "One idea here.\n\nAnother idea."),
        ("Ask:\n\n- who\n  sends?\n- who receives?", "Ask:\n- who sends?\n- who receives?"),
        (
            "1. Send.\n2. Receive,\n   - then wait\n\nDone.",
            "1. Send.\n2. Receive,\n - then wait\nDone.",
        ),
        ("Try:\n\n```python\n# a comment\nwait()\n```", "Try:\n    # a comment\n    wait()"),
        ("Try:\n\n    wait()\n\nThen\nreturn.", "Try:\n    wait()\nThen return."),
        ("- Try:\n\n      wait()\n\n- Or not.", "- Try:\n     wait()\n- Or not."),
        ("`x`, *y*, a_b_c, x[i] &lt; [1](2)\n---", "`x`, *y*, a_b_c, x[i] &lt; [1](2) ---"),
        ("<b>\n> a \\* b", "<b> > a \\* b"),
    ],
)
def test_what_a_teacher_writes_is_kept(tmp_path, text, shown):
    path = tmp_path / "help.md"
    path.write_text(f"# f\n\n## Hint 1\n\n{text}\n\n## deadlock\n\nWait.\n")
    assert read_help(path) == {"f": Help((shown,), {Diagnosis.DEADLOCK: "Wait."})}


def test_every_block_of_a_hint_is_shown_on_a_terminal_and_in_a_notebook(tmp_path):
    path = tmp_path / "help.md"
    path.write_text("# f\n\n## Hint 1\n\nOne.\n\nTwo:\n\n- a\n- b\n\n```\n# c\nd()\n```\nThree.\n")
    hints = read_help(path)["f"].hints
    text = plain(hints_report(hints, ""))
    assert [line.strip() for line in text.splitlines()] == [
        *("1. One.", "", "Two:", "- a", "- b", "# c", "d()", "Three."),
    ]
    html = hints_html("f", hints, "")
    places = [html.index(part) for part in (
        "<div>One.</div>", "<div>Two:</div>", "<div>- a</div>", "<div>- b</div>", "# c\nd()</pre>",
        "<div>Three.</div>",
    )]  # fmt: skip
    assert places == sorted(places)


def test_a_hint_with_a_fence_is_the_whole_answer(tmp_path):
    path = tmp_path / "help.md"
    path.write_text("# f\n\n## Hint 1\n\nWho?\n\n## Hint 2\n\n```\n# send\nsend(x)\n```\n")
    assert read_help(path)["f"].tells_all
    assert [section.is_answer for section in sections(path)] == [False, True]


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("Hello.\n", ":1: a text needs a heading"),
        ("# broadcast\n\nHello.\n", ":1: a text needs a heading"),
        ("## Hint 1\n\nHello.\n", ":1: Hint 1 needs a text below it, and `# EXERCISE` above"),
        ("# broadcast\n\n## Hint 1\n\n## Hint 2\n", ":3: Hint 1 needs a text below it"),
        ("# broadcast\n\n## Hint 2\n\nHello.\n", ":3: Hint 1 of broadcast comes next, not Hint 2"),
        ("# broadcast\n\n## Hint 1\n\nHi.\n\n### x\n", ":7: a text needs a heading"),
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
