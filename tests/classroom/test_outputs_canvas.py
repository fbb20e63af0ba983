"""Grades for Canvas, in a gradebook of its own form."""

from __future__ import annotations

import csv
import io

import pytest

from grader.classroom.canvas import canvas
from grader.classroom.results import ClassResults, SubmissionRow
from grader.exercise.verdict import Status
from headcount.core.errors import RequestError
from tests.classes import (
    ASKED,
    HOSTILE,
    failed,
    hostile_class,
    passed,
    small_class,
    without_points,
)

HEAD = "Student,ID,SIS User ID,SIS Login ID,Section"
EXPORTED = f"""\
{HEAD},Essay (7),Week 2 (8),Assignments Current Points,Current Score
,,,,,Manual Posting,,,
    Points Possible,,,,,10,4,(read only),(read only)
"Lovelace, Ada",9001,101,ada,A,9.5,,9.5,95
Bob,102,x2,bob@example.edu,A,8,1,8,80
"Plus, Cyd",9003,103,cyd,B,,EX,,
"Nobody, Ann",9004,104,ann,B,7,2,7,70
"Gus Fay",9006,,fay,B,7,N/A,7,70
"""


@pytest.fixture
def exported(tmp_path):
    def write(text=EXPORTED, encoding="utf-8"):
        path = tmp_path / "gradebook.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def rows(data, delimiter=","):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig")), delimiter=delimiter))


def reasons(found):
    return {item.row.key: item.reason for item in found.left_out}


def test_points_possible_that_are_no_number_are_not_replaced(exported):
    text = EXPORTED.replace("10,4,(", "10,four,(")
    with pytest.raises(RequestError, match="'four' points possible in 'Week 2"):
        canvas(small_class(), exported(text))


def test_a_gradebook_keeps_all_but_the_assignments_column(exported):
    before, after = rows(EXPORTED.encode()), rows(canvas(small_class(), exported()).data)
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        assert [*old[:6], *old[7:]] == [*new[:6], *new[7:]]
    assert [line[6] for line in after] == [
        "Week 2 (8)", "", "4",
        "4",  # Ada, by SIS user ID
        "0.33",  # Bob, by ID: 0.25 of the 3 points that could be judged
        "EX",  # Cyd is excused, and the grader failed on her
        "2",  # has not handed in
        "N/A",
    ]  # fmt: skip


def test_who_is_left_out_is_told_with_the_reason(exported):
    found = canvas(small_class(), exported())
    assert list(reasons(found)) == ["cyd", "dee", "eve", "fay"]
    told = reasons(found)
    assert "grade it again" in told["cyd"]
    assert "no student of the gradebook fits" in told["dee"]
    assert "no student" in told["eve"]
    assert "says N/A" in told["fay"]
    assert [row.key for row in found.by_name] == ["fay"]
    assert found.scaled is None


def test_an_assignment_that_canvas_does_not_know_gets_a_column(exported):
    text = EXPORTED.replace("Week 2 (8)", "Week 1 (8)")
    after = rows(canvas(small_class(), exported(text)).data)
    assert after[0][-1] == "Week 2"
    assert [line[-1] for line in after[1:]] == ["", "4", "4", "0.33", "", "", "1"]
    assert {len(line) for line in after} == {len(after[0])}


def test_points_are_scaled_to_canvas_and_that_is_said(exported):
    found = canvas(small_class(), exported(EXPORTED.replace(",10,4,", ",10,100,")))
    assert found.scaled == 100.0
    assert rows(found.data)[3][6] == "100"
    assert rows(found.data)[4][6] == "8.33"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_semicolons_line_ends_and_the_byte_order_mark_are_kept(exported, encoding):
    text = f"{HEAD},Week 2\r\nZoë,1,101,,A,\r\n".replace(",", ";")
    data = canvas(small_class(), exported(text, encoding)).data
    assert data.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    assert b"\r\n" in data
    assert rows(data, ";")[1][0] == "    Points Possible"
    assert rows(data, ";")[2] == ["Zoë", "1", "101", "", "A", "4"]


def test_two_submissions_of_one_student_are_not_guessed_between(exported):
    results = ClassResults(
        "Week 2", "now",
        (SubmissionRow("a", "A", number="101", exercises=(passed(),)),
         SubmissionRow("b", "B", number="9001", exercises=(passed(),), platform="canvas")), ASKED,
    )  # fmt: skip
    found = canvas(results, exported())
    assert set(reasons(found)) == {"a", "b"}
    assert "2 submissions fit one student" in reasons(found)["a"]
    assert rows(found.data)[3][6] == ""


def test_two_students_of_one_name_are_not_guessed_between(exported):
    text = f"{HEAD},Week 2\nAnn,1,,,A,\nAnn,2,,,A,\n"
    results = ClassResults(
        "Week 2", "now", (SubmissionRow("a", "ann", exercises=(passed(),)),), ASKED
    )
    assert "2 students" in reasons(canvas(results, exported(text)))["a"]


def test_a_name_is_found_the_other_way_round(exported):
    results = ClassResults(
        "Week 2", "now", (SubmissionRow("a", "ADA  Lovelace", exercises=(passed(),)),)
    )
    found = canvas(results, exported())
    assert rows(found.data)[3][6] != ""
    assert [row.key for row in found.by_name] == ["a"]


def test_without_a_gradebook_there_is_a_new_one():
    found = canvas(small_class())
    after = rows(found.data)
    assert after[0] == [*HEAD.split(","), "Week 2"]
    assert after[1] == ["    Points Possible", "", "", "", "", "4"]
    assert after[2] == ["Ada Lovelace", "", "101", "ada@example.edu", "", "4"]
    assert [line[-1] for line in after[2:]] == ["4", "0.33", "", "", "", "1"]
    assert list(reasons(found)) == ["cyd", "dee", "eve"]


GPU = without_points(Status.SKIPPED, "needs a GPU", ASKED[1])


def test_what_could_be_judged_for_nobody_is_nobodys_lost_point(exported):
    """Then the maximum in Canvas is that of the gradebook: 1 of 1, not 1 of 3."""
    row = SubmissionRow("a", "A", number="101", exercises=(passed(), GPU))
    results = ClassResults("Week 2", "now", (row,))
    assert (row.score, results.points_of(row), results.points) == (1.0, 1.0, 3.0)
    after = rows(canvas(results).data)
    assert [line[-1] for line in after] == ["Week 2", "1", "1"]
    found = canvas(results, exported(EXPORTED.replace("Week 2", "Week 1")))
    assert [line[-1] for line in rows(found.data)[:4]] == ["Week 2", "", "1", "1"]


def test_what_could_not_be_judged_for_one_student_costs_that_student_nothing(exported):
    """Canvas has one maximum for all: whoever has fewer points to earn gets them in proportion."""
    students = (
        SubmissionRow("a", "A", number="101", exercises=(passed(), passed(ASKED[1]))),
        SubmissionRow("b", "B", number="102", exercises=(passed(), GPU)),
        SubmissionRow("c", "C", number="103", exercises=(failed("no", score=0.5), GPU)),
    )
    after = rows(canvas(ClassResults("Week 2", "now", students)).data)
    assert [line[-1] for line in after[1:]] == ["3", "3", "3", "1.5"]


def test_whoever_could_be_judged_on_nothing_gets_no_grade(exported):
    results = ClassResults(
        "Week 2", "now", (SubmissionRow("a", "A", number="101", exercises=(GPU,)),)
    )
    fresh, filled = canvas(results), canvas(results, exported())
    assert "could be judged here" in reasons(fresh)["a"]
    assert "could be judged here" in reasons(filled)["a"]
    assert rows(fresh.data)[2][-1] == rows(filled.data)[3][6] == ""


def test_a_hostile_class_computes_nothing_in_canvas(exported):
    for data in (canvas(hostile_class()).data, canvas(hostile_class(), exported()).data):
        for line in rows(data):
            assert not any(c.lstrip().startswith(tuple("=+-@\t\r\n")) for c in line)
    assert len(rows(canvas(hostile_class()).data)) == len(HOSTILE) + 2


@pytest.mark.parametrize(
    "content, says",
    [
        ("", "holds nothing"),
        ("a,b\n1,2\n", "Export Entire Gradebook"),
        (b"\xff\xfe", "holds nothing"),
        (b"\xff\xfe\x00\xd8", "cannot be read as a gradebook: it is no text"),
        (b"\x81\x00", "cannot be read as a gradebook: it is no text"),
        (b"PK\x03\x04 xl/workbook.xml", "workbook of Excel's; save it as 'CSV UTF-8'"),
        (f"{HEAD},ID\n", r"'ID' \(column 2\) and 'ID' \(column 6\)"),
        (f'{HEAD}\n"open', "no CSV file"),
        (f"{HEAD},Week 2 (1),Week 2 (2)\n", "2 columns"),
    ],
)
def test_a_file_that_is_no_gradebook_is_refused(tmp_path, content, says):
    path = tmp_path / "x.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RequestError, match=says):
        canvas(small_class(), path)


def test_no_file_and_no_good_title_are_refused(tmp_path):
    with pytest.raises(RequestError, match="cannot be read"):
        canvas(small_class(), tmp_path / "none.csv")
    with pytest.raises(RequestError, match="another title"):
        canvas(ClassResults("Final Score", "now", ()))
