"""The pages of a class as text; what a browser makes of them is in tests/system/browser."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.classroom.pages import class_page, feedback, figures
from grader.classroom.results import ClassResults, SubmissionRow
from grader.exercise.verdict import Bound, CaseVerdict, Status
from grader.report.looks import THEME_STYLE, Look
from grader.report.summary import look_of
from grader.report.text import exercise_report
from headcount.core.verdict import Diagnosis
from headcount.report import plain
from tests.classes import (
    SEED,
    failed,
    hostile_class,
    large_class,
    passed,
    small_class,
    without_points,
)


class Reader(HTMLParser):
    """Elements with their attributes, and text."""

    VOID = frozenset({"meta", "br", "input", "line", "rect", "img"})

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self.open = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def pages(results):
    return [class_page(results), *(feedback(results, row) for row in results.rows)]


@pytest.fixture(scope="module")
def hostile():
    return [(page, Reader(page)) for page in pages(hostile_class())]


def test_nothing_of_a_strangers_becomes_an_element_or_a_handler(hostile):
    for page, reader in hostile:
        assert len(reader.all("script")) == (1 if page is hostile[0][0] else 0)
        # the page's own, and that of every graph
        assert len(reader.all("style")) == 1 + page.count(THEME_STYLE)
        for tag, attributes in reader.elements:
            assert not [name for name in attributes if name.startswith("on")], tag
            source = attributes.get("src", "data:image/svg+xml")
            assert source.startswith("data:image/svg+xml"), source
            assert attributes.get("href", "#").startswith(("#", "feedback/h")), attributes


def test_no_character_is_there_that_nobody_sees(hostile):
    for page, _ in hostile:
        page.encode("utf-8")
        assert all(c.isprintable() or c in "\n\t" for c in page)


def test_names_can_be_read_all_the_same(hostile):
    said = hostile[0][1].text
    assert "<script>document.title = 'owned'</script>" in said
    assert "Ada\\u202eecalevoL" in said
    assert "lone \\ud800 surrogate" in said
    assert "{{ 7 * 7 }}" in said
    assert "Zoë Nguyễn 名前 محمد" in said


def test_only_the_one_script_may_run(hostile):
    page = hostile[0][0]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    for text, reader in hostile:
        policies = [m for m in reader.all("meta") if "http-equiv" in m]
        (policy,) = (m["content"] for m in policies)
        assert "default-src 'none'" in policy
        allowed = f"'sha256-{digest}'" if text is page else "'none'"
        assert f"script-src {allowed};" in policy


def test_pages_need_nothing_beside_them(hostile):
    for page, reader in hostile:
        assert not reader.all("link")
        style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
        assert "url(" not in style
        assert "@import" not in style


def test_a_students_page_has_nothing_of_others():
    results = small_class()
    for row in results.rows:
        page = feedback(results, row)
        others = [r for r in results.rows if r is not row]
        for other in others:
            assert other.student not in page
            assert not other.number or other.number not in Reader(page).text
    assert str(SEED) not in class_page(results)


def test_a_students_page_says_what_happened():
    results = small_class()
    bob = feedback(results, results.rows[1])
    said = " ".join(Reader(bob).text.split())
    for words in (
        "0.25 of 3 points",
        "bob.ipynb: cell 3 does not parse",
        "deadlock",
        "2 ranks: both wait",
        "Try this: both wait",
        "An earlier grading said: 1 of 1, passed",
        "not judged here: needs a GPU",
        "1 case",
    ):
        assert words in said, words
    # the deadlock's picture
    assert [image for image in Reader(bob).all("img") if "rank 0" in image["alt"]]
    assert "not handed in" in feedback(results, results.rows[5])


def test_a_fault_of_the_graders_is_told_to_the_student():
    results = small_class()
    dee = Reader(feedback(results, results.rows[3])).text
    assert "no fault of yours" in " ".join(dee.split())
    assert "of 4 points" not in dee
    cyd = Reader(feedback(results, results.rows[2])).text
    assert "not final" in cyd


def test_the_class_page_tells_faults_and_unsafe_runs_first():
    page = class_page(small_class())
    said = " ".join(Reader(page).text.split())
    first = said[: said.index("Students by percent")]
    assert "the sandbox could not be started" in first
    assert "no space left" in first
    assert "Graded without a sandbox: 1 submission" in first
    assert "needs a GPU" in first
    assert "bob.ipynb" in first
    quiet = ClassResults("t", "now", (SubmissionRow("a", "A", exercises=(passed(),)),))
    assert "Look at these first" not in class_page(quiet)


@pytest.mark.parametrize(
    "rows", [(), (SubmissionRow("a", "A"),), (SubmissionRow("a", "A", fault="x"),)]
)
def test_a_class_with_nothing_to_show_has_pages(rows):
    for page in pages(ClassResults("t", "now", rows)):
        Reader(page)


def test_every_cell_of_a_large_class_is_there():
    results = large_class(40, 45)
    reader = Reader(class_page(results))
    assert len([a for a in reader.all("td") if "title" in a]) == 40 * 45
    assert len([a for a in reader.all("th") if "tilted" in a.get("class", "")]) == 45


def test_tables_say_what_their_cells_belong_to():
    reader = Reader(class_page(small_class()))
    tables = len(reader.all("table"))
    assert len(reader.all("caption")) == tables
    assert all(head.get("scope") in ("col", "row", "colgroup") for head in reader.all("th"))


# The numbers. --------------------------------------------------------------


def test_the_distribution_counts_every_final_score_once():
    rows = tuple(
        SubmissionRow(f"r{i}", "x", exercises=(failed("", score=score),))
        for i, score in enumerate((0.0, 0.05, 0.1, 0.3, 0.7, 0.99))
    )
    seen = figures(
        ClassResults("t", "now", (*rows, SubmissionRow("full", "x", exercises=(passed(),))))
    )
    assert [bin_.count for bin_ in seen.bins] == [2, 1, 0, 1, 0, 0, 0, 1, 0, 2]
    assert sum(bin_.count for bin_ in seen.bins) == len(seen.graded) == 7
    assert seen.median == 0.3


def test_what_is_not_final_is_in_no_distribution():
    seen = figures(small_class())
    assert [row.key for row in seen.graded] == ["ada", "bob", "fay"]
    assert [row.key for row in seen.faults] == ["dee"]
    assert [(f.row.key, f.verdict.name) for f in seen.errors] == [("cyd", "barrier")]
    assert [(f.row.key, f.verdict.name) for f in seen.skipped] == [("bob", "barrier")]
    assert [row.key for row in seen.unsafe] == ["fay"]
    assert [row.key for row in seen.nothing] == ["eve"]
    assert [(f.row.key, f.verdict.name) for f in seen.hung] == [("bob", "exchange")]
    assert seen.longest[0].key == "ada"
    assert seen.slowest[0].verdict.name == "barrier"


def test_exercises_in_numbers():
    broadcast, exchange, barrier = figures(small_class()).exercises
    assert (broadcast.judged, broadcast.passed, broadcast.partly, broadcast.rate) == (4, 3, 1, 0.75)
    assert (exchange.hung, exchange.failed, exchange.judged) == (1, 0, 2)
    assert (barrier.judged, barrier.unjudged) == (1, 2)
    (mistake,) = exchange.mistakes
    assert (mistake.diagnosis, mistake.count) == ("deadlock", 1)


def test_mistakes_of_one_diagnosis_are_told_apart_by_their_hint():
    texts = ["a", "b", "b", "c", "c", "c", "d"]
    rows = tuple(
        SubmissionRow(f"r{i}", "x", exercises=(failed(text),)) for i, text in enumerate(texts)
    )
    (exercise,) = figures(ClassResults("t", "now", rows)).exercises
    assert [(m.hint[-1], m.count) for m in exercise.mistakes] == [("c", 3), ("b", 2), ("a", 1)]


def test_only_what_changed_is_a_change():
    (change,) = figures(small_class()).changes
    assert (change.row.key, change.now.name, change.points) == ("bob", "broadcast", -0.75)


WRONG_CASE = CaseVerdict("wrong", 3, Status.FAILED, Diagnosis.WRONG_VALUE)


def half():
    """Right values, and the point of the exercise is missed."""
    return replace(
        failed("", score=0.5, diagnosis=Diagnosis.TOO_MANY_ROUNDS),
        cases=(
            CaseVerdict("right", 2, Status.PASSED),
            CaseVerdict(
                "rounds", 2, Status.FAILED, Diagnosis.TOO_MANY_ROUNDS, "too many",
                bounds=(Bound("rounds", 2, "≤", 1),), is_limit=True, misses_point=True,
            ),
        ),
    )  # fmt: skip


def test_points_stand_beside_the_mark_of_what_hangs_too():
    hung = failed("", score=0.25, diagnosis=Diagnosis.DEADLOCK)
    row = SubmissionRow("one", "One", exercises=(hung,))
    page = class_page(ClassResults("t", "now", (row,)))
    assert "∞ 0.25" in page


@pytest.mark.parametrize(
    "verdict, look",
    [
        (passed(), Look.PASSED),
        (failed("", score=0.5), Look.PARTLY),
        (half(), Look.HALF),
        (replace(half(), score=0.4), Look.PARTLY),
        (replace(half(), cases=(*half().cases, WRONG_CASE)), Look.PARTLY),
        (failed(""), Look.FAILED),
        (failed("", diagnosis=Diagnosis.TIMEOUT), Look.HUNG),
        (failed("", diagnosis=Diagnosis.MISSING), Look.UNTOUCHED),
        (without_points(Status.ERROR, ""), Look.ERROR),
        (without_points(Status.SKIPPED, ""), Look.SKIPPED),
    ],
)
def test_an_outcome_has_one_mark_on_card_and_page_and_in_text(verdict, look):
    assert look_of(verdict) is look
    row = SubmissionRow("one", "One", exercises=(verdict,))
    text = feedback(ClassResults("t", "now", (row,)), row)
    assert (
        f'<span class="{look.value}" style="flex-grow: 1"><b aria-hidden="true">{look.mark}<'
        in text
    )
    assert f'<span style="color: {look.colour}; font-weight: bold;">{look.mark}</span>' in text
    assert plain(exercise_report(verdict)).split()[0] == look.mark
