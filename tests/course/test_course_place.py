"""The place in the course after a check: what is done, and the way to the next exercise."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import unquote

import pytest

from grader.api import catalogue
from grader.course.progress import CourseProgress, ExerciseProgress, ExerciseRecord
from grader.course.progress_report import place_in_course
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Status
from grader.report.html import exercise_html
from grader.report.summary import CoursePlace
from grader.report.text import exercise_report
from headcount.report import plain

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
WHEN = datetime(2026, 1, 2, tzinfo=timezone.utc)


def progress(*passed: str) -> CourseProgress:
    record = ExerciseRecord(True, 1.0, 1.0, 1, WHEN, 0.1, True)
    return CourseProgress(
        None,
        tuple(
            ExerciseProgress(exercise, record if name in passed else None)
            for name, exercise in catalogue().items()
        ),
    )


def verdict(name: str = "broadcast", points: float = 1.0, passed: bool = True) -> ExerciseVerdict:
    status = Status.PASSED if passed else Status.FAILED
    cases = (CaseVerdict("a", 2, status),)
    return ExerciseVerdict(name, "c", status, points * passed, points, message="no", cases=cases)


def test_what_is_done_in_the_course_and_the_chapter():
    place = place_in_course(progress("who_am_i", "broadcast"), "broadcast", NOTEBOOKS)
    assert (place.passed, place.total) == (2, len(catalogue()))
    assert (place.chapter, place.dots) == ((True, False, False), "●○○")
    assert place.next_name == "tree_broadcast"
    assert place.next_link == "02_broadcast.ipynb#Exercise:-tree_broadcast"


def test_the_next_exercise_may_be_in_the_next_chapter_or_before():
    chapter = ("broadcast", "tree_broadcast", "sync_parameters")
    place = place_in_course(progress(*chapter), "tree_broadcast", NOTEBOOKS)
    assert place.next_link == "03_scatter_gather.ipynb#Exercise:-scatter"
    assert place.in_words == "chapter complete"
    *others, last = catalogue()
    place = place_in_course(progress(*others[1:], last), last, NOTEBOOKS)
    assert place.next_name == others[0]


@pytest.mark.parametrize("name", catalogue())
def test_every_exercise_has_a_heading_to_go_to(name):
    others = [one for one in catalogue() if one != name]
    place = place_in_course(progress(*others), others[0], NOTEBOOKS)
    assert place.next_name == name
    file, _, anchor = place.next_link.partition("#")
    cells = json.loads((NOTEBOOKS / file).read_text())["cells"]
    headings = [
        line.lstrip("# ").strip().replace(" ", "-")
        for cell in cells
        if cell["cell_type"] == "markdown"
        for line in "".join(cell["source"]).splitlines()
        if line.startswith("#")
    ]
    assert anchor
    assert unquote(anchor) in headings


def test_without_the_chapter_beside_it_there_is_a_name_and_no_link(tmp_path):
    for folder in (None, tmp_path):
        place = place_in_course(progress("broadcast"), "broadcast", folder)
        assert (place.next_name, place.next_link) == ("tree_broadcast", "")
    (tmp_path / "02_broadcast.ipynb").write_text("{")
    assert place_in_course(progress(), "broadcast", tmp_path).next_link == ""


def test_a_pass_shows_the_place_and_the_way_on():
    place = CoursePlace(3, 56, (True, True, False), "gather", "03.ipynb#Exercise:-gather")
    html = exercise_html(verdict(), place)
    assert '1 of 1 point · 2 of 3 in this chapter <span aria-hidden="true">●●○</span>' in html
    assert '<a href="03.ipynb#Exercise:-gather"' in html
    text = plain(exercise_report(verdict(), place))
    assert text.splitlines()[-1] == "  2 of 3 in this chapter ●●○ · next: gather"
    assert "svg" not in html


def test_a_failure_shows_where_more_hints_are_and_no_way_on():
    place = CoursePlace(3, 56, (True, True, False), "gather", "03.ipynb")
    more = 'hint("broadcast")'
    text = plain(exercise_report(verdict(passed=False), place, more))
    assert text.splitlines()[-2:] == [f"  more hints: {more}", "  2 of 3 in this chapter ●●○"]
    assert "more hints" not in plain(exercise_report(verdict(passed=False), place))
    assert "more hints" not in plain(exercise_report(verdict(), place, more))
    assert "href" not in exercise_html(verdict(passed=False), place)


@pytest.mark.parametrize(
    "points, passed, chapter, words",
    [
        (3.0, 5, (True, False), "That was a big one. Well done!"),
        (1.0, 5, (True, True), "The chapter is complete."),
        (3.0, 5, (True, True), "A big one, and the chapter is complete."),
        (1.0, 56, (True,), "That was the last one: the course is complete."),
    ],
)
def test_what_is_large_is_praised(points, passed, chapter, words):
    place = CoursePlace(passed, 56, chapter)
    html = exercise_html(verdict(points=points), place)
    assert f"<strong>{words}</strong>" in html
    assert '<svg aria-hidden="true"' in html
    assert words in plain(exercise_report(verdict(points=points), place))
