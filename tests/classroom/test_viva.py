"""Questions for a viva: which are drawn, who sees what, and the real command line."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from grader.classroom.pages import page
from grader.classroom.viva import Solutions, draw
from grader.exercise.verdict import Question, QuestionedRun
from grader.sandbox.sandboxes import missing
from tests.classes import HOSTILE, passed, small_class
from tests.classroom.test_grade import grade, hand_in

CODE = (("cell 3", 7, "def broadcast(x, src):\n    pass"),)


def questioned(texts, kind="to"):
    asked = tuple(Question(kind, text, f"answer to {text}") for text in texts)
    return QuestionedRun("7 numbers", 4, ("src: 3",), "", CODE, asked)


def asked_in(drawn):
    return [one.asked.text for some in drawn.asked.values() for one in some]


class Known(Solutions):
    """A solution that answers some questions as the student does."""

    def __init__(self, *alike):
        self.alike = alike

    def answers(self, verdict, run):
        return {text: f"answer to {text}" for text in self.alike}


def class_with(run):
    """A class of one, with a run of ``broadcast`` and of ``exchange``."""
    results = small_class()
    row = results.rows[0]
    first, second, third = row.exercises
    other = questioned(["other?"], "count")
    row = replace(
        row, exercises=(replace(first, questioned=run), replace(second, questioned=other), third)
    )
    return replace(results, rows=(row,))


def test_what_the_solution_answers_alike_is_asked_last():
    results = class_with(questioned(["alike?", "own?"]))
    row = results.rows[0]
    known = Known("alike?", "other?")
    for seed in range(5):
        assert asked_in(draw(results, row, known, 1, seed)) == ["own?"]
        assert sorted(asked_in(draw(results, row, known, 9, seed))) == ["alike?", "other?", "own?"]


def test_questions_are_of_several_kinds_and_exercises():
    results = class_with(questioned([f"{i}?" for i in range(20)]))
    for seed in range(5):
        drawn = draw(results, results.rows[0], Known(), 2, seed)
        assert sorted(drawn.asked) == ["broadcast", "exchange"]


def test_the_same_seed_draws_the_same_and_another_seed_others():
    results = class_with(questioned([f"{i}?" for i in range(20)]))
    row = results.rows[0]
    first = [asked_in(draw(results, row, Known(), 3, 0)) for _ in range(2)]
    assert first[0] == first[1]
    others = {tuple(asked_in(draw(results, row, Known(), 3, seed))) for seed in range(5)}
    assert len(others) > 1
    other_student = replace(row, key="another")
    assert asked_in(draw(results, other_student, Known(), 3, 0)) != first[0]


def test_what_cannot_be_asked_about_is_named_with_the_reason():
    results = small_class()
    silent = {row.key: draw(results, row, Known(), 3, 0).silent for row in results.rows}
    assert silent["ada"]["broadcast"] == "no question about it has one answer"
    assert silent["bob"]["broadcast"] == "wrong result"
    assert silent["dee"]["broadcast"] == "not judged yet"
    assert silent["eve"]["broadcast"] == "not handed in"


def test_without_solved_chapters_nothing_is_compared(tmp_path):
    verdict = passed()
    assert Solutions({}, tmp_path).answers(verdict, questioned(["?"])) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_student_acts_on_a_page(text):
    run = replace(questioned([text]), case=text, inputs=(text,), code=((text, 1, text),))
    results = class_with(run)
    row = replace(results.rows[0], student=text)
    drawn = draw(results, row, Known(), 2, 0)
    for answers in (False, True):
        found = page("viva.html.j2", results=results, students=[drawn], answers=answers, wanted=3)
        assert not re.search(r"<script|<img|onmouseover=\"|\x1b", found)


# The command line. ----------------------------------------------------------------

CHAIN = """def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    if place:
        dist.recv(x, (rank - 1) % n)
    if place < n - 1:
        dist.send(x, (rank + 1) % n)
"""

HANGS = "def broadcast(x, src):\n    dist.recv(x, (dist.get_rank() + 1) % dist.get_world_size())\n"


def in_a_sandbox(test):
    """One worker grades the class, where there are sandboxes."""
    skipped = pytest.mark.skipif(bool(missing()), reason=missing())
    return pytest.mark.slow(pytest.mark.xdist_group("viva")(skipped(test)))


def shown(text):
    """What a page shows, without the time of its grading."""
    return html.unescape(text.partition("<main>")[2])


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class that was asked: the command without the questions, its folder, and both pages."""
    folder = tmp_path_factory.mktemp("viva")
    hand_in(folder / "in", {"Chain": CHAIN, "Hangs": HANGS, "Nothing": ""})
    out = folder / "out"
    command = (folder / "in", "--out", out, "--layout", "folders", "--exercises", "broadcast")
    done = grade(*command, "--viva", "3")
    assert done.returncode == 0, done.stderr
    assert "viva.html" in done.stderr
    pages = {path.stem.partition("-")[0]: path.read_text() for path in (out / "viva").iterdir()}
    return command, out, pages, (out / "viva.html").read_text()


@in_a_sandbox
def test_students_get_their_code_and_the_teacher_the_answers(graded):
    _, out, pages, whole = graded
    assert (out / "viva.html").stat().st_mode & 0o077 == 0
    assert "place = (rank - src) % n" in shown(pages["chain"])
    assert "This run hangs." in pages["hangs"]
    assert "There is nothing to ask about" in pages["nothing"]
    for name, text in pages.items():
        assert "solution" not in text
        assert "<b>" not in shown(text)  # an answer
        assert not [other for other in pages if other != name and other.title() in text]
    assert whole.count("<b>") == 6


@in_a_sandbox
def test_grading_again_judges_nothing_and_draws_the_same(graded):
    command, out, _, whole = graded
    again = grade(*command, "--viva", "3")
    assert "0 judged" in again.stdout
    assert shown((out / "viva.html").read_text()) == shown(whole)


@in_a_sandbox
def test_a_grading_without_questions_says_that_older_ones_are_there(graded):
    command, out, *_ = graded
    before = (out / "viva.html").read_bytes()
    said = " ".join(grade(*command).stderr.split())
    assert "is of an earlier grading; --viva N draws questions anew" in said
    assert (out / "viva.html").read_bytes() == before
