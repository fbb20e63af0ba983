"""An assignment that is stated: its file, its roster, and the grading and handing on of a class."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from grader.api import catalogue
from grader.classroom import assignment as assignment_file
from grader.classroom.arrivals import StudentSubmission, collect
from grader.classroom.assignment import (
    Assignment,
    LatePolicy,
    RosterStudent,
    read_assignment,
    requested,
)
from grader.classroom.exports import export
from grader.classroom.gradescope import autograder, submitters
from grader.classroom.grading import grade as judge
from grader.classroom.grading import plan
from grader.classroom.messages import GradingRequest, Limits
from grader.classroom.moodle import moodle
from grader.classroom.pages import feedback_names
from grader.classroom.people import complete
from grader.classroom.results import (
    ClassResults,
    GradingState,
    SubmissionRow,
    class_results,
    doubts,
)
from grader.classroom.roster import read_roster
from grader.classroom.store import Store, StoredSubmission
from grader.sandbox.sandboxes import missing
from grader.submission.submission import Submission
from headcount.core.errors import RequestError
from tests.classes import ASKED, failed, passed
from tests.classroom.test_grade import FOLDERS, HEAD, RIGHT, WRONG, grade

GOOD = """\
title = "Week 2"
exercises = ["02-05", "ring_all_reduce"]
due = 2026-11-20 23:59:00
time_zone = "Europe/Berlin"

[weights]
ring_all_reduce = 3
"02" = 2

[late]
per_day = 10
cap = 50
grace = 15
until = 2026-11-27 23:59:00

[extensions]
"Lovelace, Ada" = 2026-11-22 23:59:00
"""


def stated(tmp_path, text):
    path = tmp_path / "assignment.toml"
    path.write_text(text)
    return read_assignment(path)


# The file. ------------------------------------------------------------------------


def test_a_file_says_what_is_due_its_worth_and_until_when(tmp_path):
    found = stated(tmp_path, GOOD).assignment
    points = {asked.name: asked.points for asked in found.exercises}
    assert next(iter(points)) == "broadcast"
    assert (points["broadcast"], points["scatter"], points["ring_all_reduce"]) == (2, 1, 3)
    assert {asked.chapter[:2] for asked in found.exercises} == {"02", "03", "04", "05", "11"}
    assert found.due.isoformat() == "2026-11-20T23:59:00+01:00"
    # a name is found the other way round, and nobody else gets the extension
    assert found.due_for("ada  lovelace").day == 22
    assert found.due_for("Bob", "1001", None) == found.due


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"Week 2"', "3", 'line 1: title is 3; title is a text, such as "Week 2"'),
        ("title", "titel", "line 1: 'titel' is not known here; did you mean title?"),
        ('title = "Week 2"\n', "", "has no title"),
        ("Berlin", "Belrin", "line 4: there is no time zone 'Europe/Belrin'; did you mean"),
        ('time_zone = "Europe/Berlin"\n', "", "line 3: the time 2026-11-20 23:59:00 has no time z"),
        ("02-05", "02-99", "line 2: '02-99': chapters with exercises are 00 to"),
        ('reduce"', 'reduc"', "line 2: there is no exercise named 'ring_all_reduc'; did you mean"),
        ("per_day", "perday", "line 11: 'perday' is not known here; did you mean per_day?"),
        ("= 10", '= "x"', "line 11: late.per_day is 'x'; late is a table: per_day = percent"),
        ("= 10", "= 110", "line 11: per_day is 110, and is percent of all points, 0 or from 1"),
        ("= 10", "= 0.1", "line 11: per_day is 0.1, and is percent of all points, 0 or from 1"),
        (
            "until = 2026-11-27",
            "until = 2026-11-19",
            "line 14: until is 2026-11-19 23:59:00, b",
        ),
        ('"02" =', '"07" =', "line 8: '07' has a weight and is not among the exercises"),
        ('"02" = 2', '"02" = -2', "line 8: the weight of '02' is -2"),
        (
            "due = 2026-11-20 23:59:00",
            "due = 2026-11-20",
            "line 3: due is 2026-11-20; due is a date",
        ),
        ("2026-11-20 23:59:00", '"2026-11-20 23:59:00"', "line 3: due is '2026-11-20 23:59:00'; d"),
        ("= 3\n", "= true\n", "line 7: weights.ring_all_reduce is True; weights is p"),
        ("2026-11-22 23:59:00", "3", "line 17: extensions.Lovelace, Ada is 3; extensions is a da"),
        ("title", 'attempts = "best"\ntitle', 'attempts is "newest in time" or "newest"'),
        ("[late]", "late = 3\n[x]", "'x' is not known here; it may hold title, exercises"),
        ("due = 2026-11-20 23:59:00\n", "", "there is no deadline; say it"),
        ("due = ", "due = = ", "line 3: there is one =; write due = 2026-11-20 23:59:00"),
        ("title", 'roster = "x.csv"\ntitle', "line 1: there is no file"),
        ('["02-05", "ring_all_reduce"]', "[]", "line 2: no exercise is due"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_line_and_the_mend(tmp_path, old, new, says):
    assert old in GOOD
    with pytest.raises(RequestError) as refused:
        stated(tmp_path, GOOD.replace(old, new, 1))
    assert says in str(refused.value)
    assert "assignment.toml" in str(refused.value)


@pytest.mark.parametrize("end", ["", "u = 2026-11-20 23:59\n"], ids=["extensions", "slip"])
def test_finding_lines_of_entries_reads_in_proportion_to_the_file(tmp_path, monkeypatch, end):
    read = 0
    decode = assignment_file.msgspec.toml.decode

    def counted(text):
        nonlocal read
        read += len(text)
        return decode(text)

    monkeypatch.setattr(assignment_file.msgspec.toml, "decode", counted)

    def work(entries):
        nonlocal read
        read = 0
        # each is before the deadline, of which there is a word with its line
        early = (f'"u{number}@x" = 2026-11-19 23:59:00\n' for number in range(entries))
        text = f"{GOOD}{''.join(early)}{end}"
        if end:
            with pytest.raises(RequestError, match=f"line {17 + entries + 1}: a time has seconds"):
                stated(tmp_path, text)
        else:
            assert f"line {17 + entries}: " in stated(tmp_path, text).remarks[-1]
        return read

    assert work(240) / work(60) < 6


def test_lateness_costs_by_the_day_from_the_deadline_after_a_grace_period_up_to_a_cap():
    policy = LatePolicy(per_day=10, cap=25, grace=15)
    due = datetime(2026, 11, 20, tzinfo=timezone.utc)

    def taken(**late):
        found = policy.lateness(due, due + timedelta(**late))
        return None if found is None else found.taken

    assert taken(days=-1) is taken(seconds=0) is taken(minutes=15) is None
    assert [taken(minutes=16), taken(hours=24), taken(hours=25), taken(days=9)] == [
        0.1, 0.1, 0.2, 0.25,
    ]  # fmt: skip
    # a platform's mark says that it is late, and not by how much: nothing is guessed
    marked = Assignment(due=due, late=policy).lateness(due, None, marked=True)
    assert (marked.taken, "by how much" in marked.words) == (0.0, True)


DUE = datetime(2026, 11, 20, tzinfo=timezone.utc)


def test_late_work_after_its_last_moment_is_worth_nothing():
    until = DUE + timedelta(days=3)
    policy = LatePolicy(per_day=10, cap=20, until=until)
    assert policy.lateness(DUE, until).taken == 0.2
    too_late = policy.lateness(DUE, until + timedelta(seconds=1))
    assert too_late.taken == 1.0
    assert too_late.words.endswith(
        "late, when late work was no longer accepted: −100 % of all points"
    )
    # an extension that ends later is in time
    assert policy.lateness(until + timedelta(days=1), until + timedelta(hours=1)) is None


# What is due. ---------------------------------------------------------------------


def test_what_only_a_few_handed_in_is_named_as_a_guess_unless_it_is_stated():
    rows = (
        SubmissionRow("ada", "Ada", exercises=(passed(),)),
        SubmissionRow("bob", "Bob", exercises=(passed(), failed("no", ASKED[1]))),
        SubmissionRow("eve", "Eve"),
    )
    (said,) = doubts(ClassResults("t", "now", rows, ASKED[:2]))
    assert said.startswith("exchange: handed in by 1 of 2 students; what one student hands in")
    assert "--exercises" in said
    assert doubts(ClassResults("t", "now", rows, ASKED[:2], Assignment(exercises=ASKED[:2]))) == []


def test_weights_lateness_and_what_is_missing_are_in_the_results_and_not_in_the_store(tmp_path):
    due = datetime(2026, 11, 20, tzinfo=timezone.utc)
    asked = requested(["neighbours", "who_am_i"], {"neighbours": 3})
    with Store(tmp_path) as store:
        store.assignment = Assignment(
            "Week 1",
            asked,
            due,
            late=LatePolicy(per_day=10),
            extensions={"BOB": due.replace(day=25)},
        )
        for name in ("ada", "bob"):
            store.note(
                0,
                StoredSubmission(
                    name, name.title(), "d", ["neighbours"], handed_in="2026-11-21T12:00:00+00:00"
                ),
            )
            verdict = passed(next(one for one in asked if one.name == "neighbours"))
            store.save(name, "mark", replace(verdict, score=0.5, max_score=1.0))
        results = class_results(store)
    ada, bob = results.rows
    assert (results.title, results.points) == ("Week 1", 4.0)
    assert (ada.earned, ada.penalty, ada.score) == (1.5, 0.8, 0.7)
    assert (bob.earned, bob.penalty, bob.score) == (1.5, 0.0, 1.5)
    assert "not handed in, 0 points: who_am_i" in ada.notes
    assert any("late: −20 % of all points" in note for note in ada.notes)


def test_what_a_stopped_grading_left_is_not_judged_yet_and_no_fault(tmp_path):
    with Store(tmp_path) as store:
        store.course = tuple((asked.name, asked.chapter, asked.points) for asked in ASKED)
        store.note(0, StoredSubmission("ada", "Ada", "d", [], pending=True))
        store.note(1, StoredSubmission("bob", "Bob", "d", ["broadcast", "exchange"], pending=True))
        store.save("bob", "mark", passed())
        results = class_results(store)
    assert [row.state for row in results.rows] == [GradingState.WAITING] * 2
    assert results.rows[1].waiting == ("exchange",)
    assert [results.ungraded(row) for row in results.rows] == [
        "it is not judged yet; grade again"
    ] * 2
    assert not any(row.fault for row in results.rows)


# The roster. ----------------------------------------------------------------------

CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Week 1 (7)
    Points Possible,,,,,10
"Lovelace, Ada",1001,u1,ada@example.edu,A,9
"Müller, Jürgen",1002,u2,jm@example.edu,A,8
"Absent, Ann",1003,1001,ann@example.edu,A,3
"Student, Test",9,,x,A,
"""

MOODLE = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,\
Last modified (submission),Last modified (grade),Feedback comments
Participant 900,José Muñoz,jose@example.edu,Submitted for grading,,100.00,Yes,\
"Friday, 20 November 2026, 11:58 PM",-,
Participant 901,李 小龙,li@example.edu,No submission,,100.00,Yes,-,-,
"""


def written(tmp_path, text, name="roster.csv"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def submission(key, student, sid=None, platform="", email=None):
    return StudentSubmission(key, student, email, sid, (), (), platform)


def test_a_roster_is_canvas_gradebook_or_moodles_worksheet_or_a_table(tmp_path):
    canvas = read_roster(written(tmp_path, CANVAS))
    assert [one.name for one in canvas] == ["Lovelace, Ada", "Müller, Jürgen", "Absent, Ann"]
    assert canvas[0].numbers[0] == ("1001", "canvas")
    jose, li = read_roster(written(tmp_path, MOODLE))
    assert jose == RosterStudent(
        "José Muñoz", "jose@example.edu", (("900", "moodle"),), datetime(2026, 11, 20, 23, 58)
    )
    assert li.handed_in is None
    (own,) = read_roster(written(tmp_path, "First name;Last name;ID\nZoë;Nguyễn;7\n"))
    assert (own.name, own.numbers) == ("Zoë Nguyễn", (("7", ""),))
    with pytest.raises(RequestError, match="its first line holds a, b"):
        read_roster(written(tmp_path, "a,b\n1,2\n"))


def test_a_student_is_found_by_a_number_of_its_own_kind_by_address_and_by_name(tmp_path):
    roster = read_roster(written(tmp_path, CANVAS))
    rows, remarks = complete(
        roster,
        [
            submission("a", "lovelaceada", "1001", "canvas"),
            submission("b", "mullerjurgen", email="JM@example.edu"),
            submission("c", "stranger", "1001"),  # 1001 is Ann's SIS number, and Ada's in Canvas
            submission("d", "nobody"),
        ],
        [],
    )
    assert [row.student for row in rows] == [
        "Lovelace, Ada", "Müller, Jürgen", "Absent, Ann", "nobody",
    ]  # fmt: skip
    assert remarks == ["not in the roster: nobody"]
    rows, _ = complete(roster, [submission("a", "ada")], [])
    assert [(row.student, row.only_in_roster) for row in rows] == [
        ("Lovelace, Ada", False), ("Müller, Jürgen", True), ("Absent, Ann", True),
    ]  # fmt: skip


def test_who_may_have_handed_in_is_not_said_to_have_handed_in_nothing(tmp_path):
    roster = read_roster(written(tmp_path, CANVAS))
    rows, remarks = complete(
        roster, [submission("a", "Ada Lovelace"), submission("b", "lovelace, ADA")], []
    )
    assert [(row.student, row.problems) for row in rows[:3]] == [
        ("Ada Lovelace", ("contested in the roster",)),
        ("lovelace, ADA", ("contested in the roster",)),
        ("Lovelace, Ada", ("in the roster, and it is contested what was handed in",)),
    ]  # fmt: skip
    assert remarks == ["contested in the roster: Ada Lovelace, lovelace, ADA"]


def test_a_row_stays_the_same_row_when_its_student_hands_in(tmp_path):
    roster = read_roster(written(tmp_path, CANVAS))
    *_, ann = complete(roster, [], [])[0]
    stored = [
        StoredSubmission(
            ann.key, ann.student, "", [], numbers=list(ann.numbers), only_in_roster=True
        )
    ]
    *_, row = complete(roster, [submission("new", "absentann", "1003", "canvas")], stored)[0][:1]
    assert row.key == ann.key
    # and once there is work in it, a roster alone never takes its place
    worked = [StoredSubmission(ann.key, ann.student, "d", [], numbers=list(ann.numbers))]
    assert ann.key not in {row.key for row in complete(roster, [], worked)[0]}


# Attempts, and times. -------------------------------------------------------------


@pytest.mark.parametrize(
    ("due", "until", "hour", "word"),
    [
        (12, None, "11", "newest in time"),
        (9, None, "17", "newest"),
        (20, None, "17", "newest"),
        (9, 12, "11", "newest that is worth points"),
        (9, 10, "17", "newest"),
        (9, 18, "17", "newest"),
    ],
)
def test_of_two_attempts_the_newest_counts_of_those_that_are_worth_the_most(
    tmp_path, due, until, hour, word
):
    start = tmp_path / "HW1 download" / "HW1_jsmith_attempt_2024-03-03"
    start.parent.mkdir()
    for each in ("11", "17"):
        (start.parent / f"{start.name}-{each}-00-00_hw1.py").write_text(each)
    late = LatePolicy(per_day=10, until=until and datetime(2024, 3, 3, until))
    at_hour = datetime(2024, 3, 3, due)
    with collect(start.parent, lateness_of=lambda _, at: late.lateness(at_hour, at)) as arrivals:
        (one,) = arrivals.submissions
        assert one.files[0].read().decode() == hour
        assert one.handed_in == datetime(2024, 3, 3, int(hour))
    (note,) = one.problems
    assert f"the {word}, of 2024-03-03 {hour}:00:00, is graded" in note


def test_gradescopes_and_nbgraders_times_are_read(tmp_path):
    data = b"s_1:\n  :submitters:\n  - :name: Ada\n  :created_at: 2024-05-01 12:00:00.000000000 Z\n"
    ((ada,),) = submitters(io.BytesIO(data)).values()
    assert ada.handed_in == datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    work = tmp_path / "submitted" / "ada" / "ps1"
    work.mkdir(parents=True)
    (work / "a.py").write_text("")
    (work / "timestamp.txt").write_text("2024-05-01 12:00:00.500000 America/New_York")
    with collect(tmp_path / "submitted") as arrivals:
        (one,) = arrivals.submissions
    assert one.handed_in.astimezone(timezone.utc).hour == 16


# Handing on. ----------------------------------------------------------------------


def rows_of(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


def a_class():
    rows = (
        SubmissionRow(
            "jose",
            "José Muñoz",
            None,
            "900",
            (passed(), failed("<b>", ASKED[1])),
            platform="moodle",
        ),
        SubmissionRow("li", "李 小龙", "li@example.edu", None, (passed(), passed(ASKED[1]))),
        SubmissionRow(
            "ada", "Lovelace, Ada_1_2", None, "1001", (passed(),), platform="canvas", upload=7
        ),
        SubmissionRow("ann", "José Muñoz/..", exercises=(passed(),)),
        SubmissionRow("bob", "josé muñoz", exercises=(passed(),)),
    )
    return ClassResults("Week 2", "now", rows, ASKED[:2], Assignment("Week 2"))


def test_moodles_worksheet_is_filled_in_and_read_back_as_moodle_does(tmp_path):
    """Moodle reads the number at the end of Identifier, Grade, and Feedback comments."""
    results = a_class()
    results = replace(results, rows=results.rows[:-1])
    made = moodle(results, written(tmp_path, MOODLE))
    after = rows_of(made.data)
    assert [(row["Identifier"][len("Participant ") :], row["Grade"]) for row in after] == [
        ("900", "33.33"), ("901", "100"),
    ]  # fmt: skip
    assert (
        after[0]["Feedback comments"] == "broadcast: 1 of 1, passed; exchange: 0 of 2, wrong result"
    )
    for old, new in zip(rows_of(MOODLE.encode()), after, strict=True):
        assert {**new, "Grade": "", "Feedback comments": ""} == old
    assert made.scaled == 100.0
    assert {one.row.key for one in made.left_out} == {"ada", "ann"}
    fresh = rows_of(moodle(a_class()).data)
    assert [(row["Identifier"], row["Grade"], row["Maximum Grade"]) for row in fresh] == [
        ("Participant 900", "1", "3"),
    ]
    with pytest.raises(RequestError, match="no column Identifier or Last modified"):
        moodle(a_class(), written(tmp_path, "Kennung,Grade\n"))


def test_a_worksheet_of_another_moodle_assignment_is_left_alone(tmp_path):
    """Moodle numbers everybody anew in each assignment; addresses and names stay the same."""
    results = a_class()
    results = replace(results, rows=results.rows[:2])
    # the week before: other numbers
    other = written(tmp_path, MOODLE.replace("Participant 9", "Participant 8"))
    with pytest.raises(RequestError) as refused:
        moodle(results, other)
    assert "José Muñoz is participant 800 there, and 900 in what was handed in" in str(
        refused.value
    )
    assert rows_of(moodle(results, other, force=True).data)[0]["Grade"] == "33.33"
    # graded again: the numbers show that the grades there are this assignment's
    graded = MOODLE.replace("grading,,", "grading,50.00,").replace("No submission,,", "Draft,7.00,")
    again = moodle(results, written(tmp_path, graded))
    assert again.replaced == ("José Muñoz 50.00 → 33.33", "李 小龙 7.00 → 100")
    # a teacher's comment stays, and what an export has written before is replaced with a word
    graded = again.data.decode("utf-8-sig").replace("wrong result", "ours\nTA: see me")
    graded = graded.replace(
        '"Yes","-","-","broadcast: 1 of 1, passed; exchange: 2', '"No","-","-","TA'
    )
    once_more = moodle(results, written(tmp_path, graded))
    jose, li = rows_of(once_more.data)
    assert jose["Feedback comments"].endswith(", wrong result\nTA: see me")
    assert once_more.replaced == ("the comment on José Muñoz",)
    assert li["Feedback comments"].startswith("TA")
    assert [one.reason for one in once_more.left_out] == [
        "the worksheet says that the grade cannot be changed"
    ]
    first = MOODLE.replace("Yes,-,-,\n", "Yes,-,-,TA: page 2\n")
    after = rows_of(moodle(results, written(tmp_path, first)).data)
    assert after[1]["Feedback comments"].split("\n")[1:] == ["TA: page 2"]
    with pytest.raises(RequestError, match="with a scale, and without points"):
        moodle(results, written(tmp_path, MOODLE.replace("Maximum Grade", "Scale")))
    graded = MOODLE.replace("grading,,", "grading,50.00,").replace("No submission,,", "Draft,7.00,")
    # one number that agrees is enough: a namesake of another number is no other assignment
    namesake = replace(results.rows[0], key="jose-2", number="77", email="li@example.edu")
    both = replace(results, rows=(results.rows[0], namesake))
    assert len(moodle(both, written(tmp_path, graded)).replaced) == 2
    # without a number nothing shows it, whatever the title is
    unknown = replace(results, rows=results.rows[1:])
    with pytest.raises(RequestError, match="does not say of which assignment they are"):
        moodle(unknown, written(tmp_path, graded))


def test_pages_are_named_so_that_people_and_platforms_find_whose_they_are():
    names = feedback_names(a_class())
    assert names == {
        "jose": "José Muñoz_900_assignfeedback_file_feedback.html",
        "li": "李 小龙.html",
        # Canvas takes the first two numbers between underscores
        "ada": "Lovelace, Ada 1 2_1001_7_feedback.html",
        "ann": "José Muñoz.html",
        "bob": "josé muñoz (bob).html",
    }


def test_gradescopes_autograder_knows_what_is_due(tmp_path):
    """The file that it carries says the same as the instructor's."""
    title = 'Week "2" 😀 \\ é'
    asked = requested(["neighbours", "scatter"], {"scatter": 2.5})
    with zipfile.ZipFile(
        io.BytesIO(autograder(Assignment(title, asked, shows="points")))
    ) as zipped:
        text = zipped.read("assignment.toml").decode()
        assert "AUTOGRADER/source/assignment.toml" in zipped.read("run_autograder").decode()
    found = stated(tmp_path, text).assignment
    assert (found.title, found.exercises, found.shows) == (title, asked, "points")
    with zipfile.ZipFile(io.BytesIO(autograder(Assignment()))) as zipped:
        assert "assignment.toml" not in zipped.namelist()


# The command line. ----------------------------------------------------------------

ASSIGNMENT = """\
title = "Week 1"
exercises = ["neighbours", "who_am_i"]
due = 2026-11-20 23:59:00
time_zone = "Europe/Berlin"
roster = "roster.csv"
[weights]
neighbours = 3
[late]
per_day = 10
[handed_in]
"jm@example.edu" = 2026-11-21 08:00:00
"""


def book(out):
    return {row["student"]: row for row in rows_of((out / "gradebook.csv").read_bytes())}


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.slow
@pytest.mark.timeout(300)  # five gradings, one after the other
def test_an_assignment_from_its_file_to_canvas_and_a_late_student(tmp_path):
    home, out = tmp_path / "in", tmp_path / "out"
    home.mkdir()
    (home / "lovelaceada_1001_2001_hw.py").write_text(HEAD + RIGHT)
    beyond = "\n\ndef barrier():\n    pass\n"
    (home / "mullerjurgen_LATE_1002_2002_hw.py").write_text(HEAD + WRONG + beyond)
    roster = written(tmp_path, CANVAS)
    file = written(tmp_path, ASSIGNMENT, "assignment.toml")

    done = grade(home, "--out", out, "--assignment", file, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["title"], summary["max_score"]) == ("Week 1", 4.0)
    assert summary["late"] == {"Müller, Jürgen": "8 h late: −10 % of all points"}
    assert summary["nothing_handed_in"] == ["Absent, Ann"]
    rows = book(out)
    assert (rows["Lovelace, Ada"]["score"], rows["Lovelace, Ada"]["max_score"]) == ("4", "4")
    jurgen = rows["Müller, Jürgen"]
    assert "not part of this assignment, and not judged: barrier" in jurgen["notes"]
    assert "not handed in, 0 points: who_am_i" in jurgen["notes"]
    assert jurgen["taken_off_for_lateness"] == "0.4"
    assert "Week 1" in (out / "class.html").read_text()

    # one who is late is graded into the class, and nobody's row is lost or taken for another's
    late = tmp_path / "late"
    late.mkdir()
    (late / "absentann_1003_2003_hw.py").write_text(HEAD + RIGHT)
    done = grade(late, "--out", out)
    assert done.returncode == 2
    assert "Lovelace, Ada and Müller, Jürgen." in done.stderr
    done = grade(late, "--out", out, "--only", "ann@example.edu", "--json")
    assert done.returncode == 0, done.stderr
    after = book(out)
    assert list(after) == ["Absent, Ann", "Lovelace, Ada", "Müller, Jürgen"]
    assert (after["Absent, Ann"]["score"], after["Absent, Ann"]["key"]) == (
        "4", rows["Absent, Ann"]["key"],
    )  # fmt: skip
    assert after["Müller, Jürgen"] == jurgen
    other = written(tmp_path, ASSIGNMENT.replace("Week 1", "Week 2"), "week2.toml")
    done = grade(home, "--out", out, "--assignment", other, "--add")
    assert done.returncode == 2
    assert "holds the results of 'Week 1', and this is 'Week 2'; name another folder" in done.stderr

    # its column is filled in; one of another title is not, unless it is named
    said = export(out, "canvas", tmp_path / "canvas.csv", roster)
    filled = rows_of((tmp_path / "canvas.csv").read_bytes())
    assert [row["Week 1 (7)"] for row in filled] == ["10", "10", "0.25", "10", ""]
    assert any("Lovelace, Ada 9 → 10" in line for line in said)
    ninth = written(tmp_path, CANVAS.replace("Week 1", "Week 9"), "9.csv")
    with pytest.raises(RequestError, match="--force --title 'Week 9' replaces them"):
        export(out, "canvas", tmp_path / "no.csv", ninth, "Week 9")
    assert not (tmp_path / "no.csv").exists()
    export(out, "feedback", tmp_path / "feedback.zip")
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        assert "Lovelace, Ada_1001_2001_feedback.html" in archive.namelist()
        assert b"Lovelace" in archive.read("Lovelace, Ada_1001_2001_feedback.html")


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.slow
@pytest.mark.timeout(300)  # two gradings, and three that are refused
def test_exercises_on_the_command_line_and_a_mean_request(tmp_path):
    home, out = tmp_path / "in", tmp_path / "out"
    for name, code in (("ada", RIGHT), ("bob", RIGHT + "\n\ndef barrier():\n    pass\n")):
        (home / name).mkdir(parents=True)
        (home / name / "hw.py").write_text(HEAD + code)
    exercises = ["--exercises", "neighbours,who_am_i", "--title", "Week 1"]
    done = grade(home, "--out", out, *exercises, *FOLDERS)
    assert done.returncode == 0, done.stderr
    assert "Week 1: 2 exercises, 2 points" in done.stdout
    assert {row["score"] for row in book(out).values()} == {"2"}
    # without a word on what is due, one student's file counts for all, and that is said
    shutil.rmtree(out)
    done = grade(home, "--out", out, *FOLDERS)
    assert "guessed to be due: barrier: handed in by 1 of 2 students" in " ".join(
        done.stdout.split()
    )
    for request, says in (
        (["--out", home / "out"], "would be taken for a student"),
        (["--out", out, "--only", "adda"], "did you mean ada (ada-"),
        (["--out", out, "--drop", "eve"], "there is no student 'eve'"),
    ):
        done = grade(home, *request, *FOLDERS)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


# Several files with one exercise. -------------------------------------------------

BOTH = b"def broadcast(x, src): ...\ndef tree_broadcast(x, src): ...\n"


@pytest.mark.parametrize(
    "labels, note",
    [
        (["02_broadcast.py"], []),
        (
            ["02_broadcast.py", "02_broadcast.py"],
            ["broadcast and tree_broadcast are taken from the newest 02_broadcast.py"],
        ),
        (
            ["02_broadcast.py", "extra.py", "extra.py"],
            ["broadcast and tree_broadcast are taken from the newest extra.py;"
             " also in 02_broadcast.py"],
        ),
        (
            [f"{letter}.py" for letter in "abcdef"],
            ["broadcast and tree_broadcast are taken from f.py; also in a.py, b.py, c.py and"
             " 2 more"],
        ),
    ],
)  # fmt: skip
def test_it_is_said_once_which_of_several_files_counts(labels, note):
    wanted = ["broadcast", "tree_broadcast"]
    files = [Submission.from_bytes(BOTH, label, wanted) for label in labels]
    assert plan(files, catalogue(), wanted).notes == note


def test_remarks_on_files_are_few_and_short_before_a_worker_sends_them():
    cells = [{"cell_type": "code", "source": "def f(:", "id": f"{n}"} for n in range(30)]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    label = f"{'d' * 2000}/a.ipynb"
    told = []
    request = GradingRequest("k", ((label, notebook.encode()),), "", 1, Limits(sandbox=False))
    judge(request, catalogue(), told.append)
    assert len(told[0].notes) == 21
    assert told[0].notes[-1].endswith(" 11 more remarks like these")
    assert max(map(len, told[0].notes)) <= 301
