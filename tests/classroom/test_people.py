"""The table of people: made from rosters, edited by hand, used wherever it counts who is who."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from dataclasses import replace

import pytest

from grader.api import catalogue
from grader.classroom.arrivals import StudentSubmission
from grader.classroom.assignment import RosterStudent, read_assignment
from grader.classroom.canvas import canvas
from grader.classroom.command import Options, grade
from grader.classroom.messages import ExerciseJudged, Limits, SubmissionJudged, SubmissionPlanned
from grader.classroom.moodle import COLUMNS as MOODLE_COLUMNS
from grader.classroom.people import class_of, complete, read_people, united, update
from grader.classroom.results import ClassResults, SubmissionRow
from headcount.core.errors import RequestError
from tests.classes import ASKED, failed, passed
from tests.classroom.test_grade import ROOT

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings this one
    import tomli as tomllib


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section
"Lee, Ann",1001,s1,alee,A
"Smith, John",1002,s2,js2,A
"Smith, John",1003,s3,js3,B
"""

#: Moodle's worksheets of two assignments, in which everybody has another number.
WORKSHEETS = [
    "Identifier,Full name,Email address\n"
    f"Participant {start + 1},Ann Lee,ann@x\n"
    f"Participant {start + 2},John Smith,js@x\n"
    for start in (50, 80)
]

GRADESCOPE = """\
First Name,Last Name,SID,Email,Role
Ann,Lee,s1,ann@x,Student
John,Smith,s3,js@x,Student
Prof,Essor,s9,p@x,Instructor
"""


@pytest.fixture
def put(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def entries(path):
    return tomllib.loads(path.read_text("utf-8"))["person"]


def submission(key, student, number=None, platform="", email=None):
    return StudentSubmission(key, student, email, number, (), (), platform)


# Making it. -----------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True])
def test_each_person_of_all_rosters_stands_once_in_whatever_order_they_come(put, backwards):
    texts = [CANVAS, *WORKSHEETS, GRADESCOPE]
    rosters = [put(f"{number}.csv", text) for number, text in enumerate(texts)]
    to = put("people.toml", "")
    to.unlink()
    said = update(rosters[::-1] if backwards else rosters, to)
    assert said == [f"{to}: 3 people"]
    known = {frozenset(one["known_as"]) for one in entries(to)}
    assert known == {
        frozenset({"canvas 1001", "moodle 51", "moodle 81", "s1", "alee"}),
        frozenset({"canvas 1002", "s2", "js2"}),
        frozenset({"canvas 1003", "moodle 52", "moodle 82", "s3", "js3"}),
    }


def test_what_is_not_clear_is_asked_and_an_answer_by_hand_holds(put):
    rosters = [put("canvas.csv", CANVAS), put("moodle.csv", WORKSHEETS[0])]
    to = rosters[0].parent / "people.toml"
    said = update(rosters, to)
    # the one Ann Lee of both is found by the name; John Smith may be either
    assert any("by the name alone: Lee, Ann" in line for line in said)
    assert [line for line in said if "rename maybe" in line] == [
        f"is John Smith (js@x) also Smith, John (canvas {number})? Answer in {to}: there, rename"
        " maybe to same, or to other"
        for number in (1002, 1003)
    ]
    text = to.read_text("utf-8")
    asked = 'maybe = ["canvas 1002", "canvas 1003"]'
    assert text.count(asked) == 1
    to.write_text(text.replace(asked, 'other = ["canvas 1002"]\nsame = ["canvas 1003"]'), "utf-8")
    # an answer holds at once, and whatever comes later
    assert [one.email for one in read_people(to)] == ["ann@x", None, "js@x"]
    assert update([put("later.csv", WORKSHEETS[1])], to) == [f"{to}: 3 people"]
    assert {"canvas 1003", "moodle 52", "moodle 82"} <= set(entries(to)[2]["known_as"])


def test_two_of_one_name_who_are_told_apart_are_not_asked_about_again(put):
    rosters = [put("canvas.csv", "Student,ID,Section\nAnn Lee,1,A\nAnn Lee,2,A\n")]
    to = rosters[0].parent / "people.toml"
    update([*rosters, put("other.csv", "name,email\nAnn Lee,ann@x\n")], to)
    to.write_text(to.read_text("utf-8").replace('maybe = ["', 'other = ["'), "utf-8")
    before = to.read_bytes()
    assert update(rosters, to) == [f"{to}: 3 people"]
    assert to.read_bytes() == before


def test_what_was_edited_stays_when_new_rosters_come(put):
    to = put(
        "people.toml",
        '[[person]]\nname = "Zoë, called Z"\nknown_as = ["canvas 1001"]\nsection = "evening"\n'
        'note = "away in May"\n',
    )
    update([put("canvas.csv", CANVAS)], to)
    assert entries(to)[0] == {
        "name": "Zoë, called Z",
        "known_as": ["canvas 1001", "s1", "alee"],
        "section": "evening",
        "note": "away in May",
    }
    assert len(entries(to)) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[[person]]\nname = "A"\n\n[[person]]\nemail = "b@x"\n',
            "line 4: Object missing required",
        ),
        ('[[person]]\nname = "A"\nknown_as = [4711]\n', "line 1: Expected `str`, got `int`"),
        ('[[person]]\nname = "A"\nsame = ["b@x"]\n', "line 1: 0 other entries are called 'b@x'"),
        ('title = "Week 2"\n', "is no table of people: a table has [[person]] for each"),
        ('[[person]]\nname = "A\n', "line 2: a quote is missing; write name"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_the_line_and_the_mend(put, text, says):
    path = put("people.toml", text)
    with pytest.raises(RequestError) as refused:
        read_people(path)
    assert f"{path}" in str(refused.value)
    assert says in str(refused.value)


def test_people_without_a_name_are_left_out_until_a_roster_names_them(put):
    to = put("people.toml", "").parent / "people.toml"
    to.unlink()
    blind = put("blind.csv", "Identifier,Status\nParticipant 51,Submitted\n")
    assert update([blind, put("c.csv", CANVAS)], to)[0] == f"{blind}: 1 without a name are left out"
    assert {one["name"] for one in entries(to)} == {"Lee, Ann", "Smith, John"}
    # without a name there is a row for each number, and with one it is the student's
    assert [one.name for one in class_of(to, blind)] == ["Participant 51"]
    update([put("named.csv", WORKSHEETS[0])], to)
    assert [one.name for one in class_of(to, blind)] == ["Lee, Ann"]


def test_putting_people_together_compares_in_proportion_to_their_number(monkeypatch):
    from grader.classroom import people

    calls = 0
    folded = people.folded

    def counted(one):
        nonlocal calls
        calls += 1
        return folded(one)

    monkeypatch.setattr(people, "folded", counted)

    def work(count):
        nonlocal calls
        calls = 0
        lists = [
            [
                RosterStudent(f"P{n} Q{n}", f"{n}@x" if kind else None, ((f"{n}", kind),))
                for n in range(count)
            ]
            for kind in ("canvas", "moodle", "")
        ]
        united(
            [one for all_of in lists for one in all_of],
            [number for number in range(3) for _ in range(count)],
        )
        return calls

    assert work(200) / work(50) < 6


# Using it. ------------------------------------------------------------------------


def test_what_a_group_has_handed_in_is_a_row_for_each_member(put):
    groups = (
        "name,canvas_user_id,user_id,login_id,sections,group_name\n"
        "Ann Lee,1001,s1,alee,A,Group One\n"
        '"Smith, John",1003,s3,js3,B,Group One\n'
    )
    to = put("people.toml", "").parent / "people.toml"
    to.unlink()
    update([put("canvas.csv", CANVAS), put("groups.csv", groups)], to)
    handed_in = submission("g", "groupone", "501", "canvas")
    rows, remarks = complete(read_people(to), [handed_in], [])
    assert [(row.student, row.number, row.only_in_roster) for row in rows] == [
        ("Lee, Ann", "1001", False), ("Smith, John", "1003", False), ("Smith, John", "1002", True),
    ]  # fmt: skip
    assert "handed in by groupone" in rows[0].problems
    assert (remarks, len({row.key for row in rows})) == ([], 3)
    # Moodle names each member, with the group before it
    alone = submission("m", "Group One-Ann Lee", "77", "moodle")
    (row, *_), _ = complete(read_people(to), [alone], [])
    assert (row.student, row.key) == ("Lee, Ann", "m")


def test_grades_of_one_platform_go_into_the_gradebook_of_another(put):
    to = put("people.toml", "").parent / "people.toml"
    to.unlink()
    book = put("canvas.csv", CANVAS)
    update([book, put("moodle.csv", WORKSHEETS[0]), put("gs.csv", GRADESCOPE)], to)
    handed_in = [submission(f"k{n}", "John Smith", f"5{n}", "moodle") for n in (1, 2)]
    handed_in[0] = replace(handed_in[0], student="Ann Lee")
    found, _ = complete(read_people(to), handed_in, [])
    rows = tuple(
        SubmissionRow(
            one.key, one.student, one.email, one.number, (passed(),), platform=one.platform,
            numbers=one.numbers,
        )
        for one in found[:2]
    )  # fmt: skip
    made = canvas(ClassResults("Week 2", "now", rows, ASKED[:1]), book)
    after = list(csv.reader(io.StringIO(made.data.decode())))
    assert [(line[1], line[-1]) for line in after[2:]] == [
        ("1001", "1"),
        ("1002", ""),
        ("1003", "1"),
    ]
    assert (made.by_name, made.left_out) == ((), ())


def test_without_a_roster_an_anonymous_download_of_moodle_has_a_name_for_each(tmp_path):
    from grader.classroom.arrivals import collect

    for number in (51, 52):
        (tmp_path / "in" / f"Participant_{number}_assignsubmission_file_").mkdir(parents=True)
    with collect(tmp_path / "in") as arrivals:
        assert [one.student for one in arrivals.submissions] == ["Participant 51", "Participant 52"]
        assert not any("looks the same" in p for one in arrivals.submissions for p in one.problems)


# A whole term: 60 students, three platforms, three assignments, one of them in groups. --

RIGHT = (
    "def transformer_block_params(hidden, glu):\n    return (16 if glu else 12) * hidden * hidden\n"
)
WRONG = "def transformer_block_params(hidden, glu):\n    return 1\n"
COUNT = 60


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "grader", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip


def table_of(path, text=None):
    text = path.read_text("utf-8-sig") if text is None else text
    return list(csv.DictReader(io.StringIO(text)))


def csv_text(rows):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


class Known:
    """An engine that knows the two answers: how a class is judged is tested elsewhere."""

    def run(self, requests):
        for request in requests:
            verdict = replace(
                passed() if request.files[-1][1] == RIGHT.encode() else failed("no"),
                name="transformer_block_params", max_score=1.0,
            )  # fmt: skip
            verdict = replace(verdict, score=min(verdict.score, 1.0))
            yield SubmissionPlanned(request.key, (verdict.name,), (), {}, ())
            yield ExerciseJudged(request.key, "", verdict)
            yield SubmissionJudged(request.key)

    def close(self):
        pass


def build_term(home):
    """Write what three platforms give of a term, and return who earns what in each assignment."""
    # three students are called Jo Kim; the others have names of their own
    names = [
        ("Jo", "Kim") if n in (7, 8, 9) else (f"Ann{n:02}", f"Lee{n:02}") for n in range(COUNT)
    ]
    group = [f"Team {n // 3}" for n in range(COUNT)]
    canvas_rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]]
    groups = [["name", "canvas_user_id", "user_id", "login_id", "sections", "group_name"]]
    worksheet = [list(MOODLE_COLUMNS)]
    gradescope = [
        ["First Name", "Last Name", "SID", "Email", "Role"],
        ["Pro", "Fessor", "s99", "p@x", "Instructor"],
    ]
    earned = []
    for n, (first, last) in enumerate(names):
        canvas_rows.append([f"{last}, {first}", 1000 + n, f"s{n}", f"login{n}", "AB"[n % 2]])
        groups.append([f"{first} {last}", 1000 + n, f"s{n}", f"login{n}", "AB"[n % 2], group[n]])
        moodle = {
            "Identifier": f"Participant {500 + n}",
            "Full name": f"{first} {last}",
            "Email address": f"mail{n}@x",
            "Maximum Grade": "10.00",
        }
        worksheet.append([moodle.get(column, "") for column in MOODLE_COLUMNS])
        gradescope.append([first, last, f"s{n}", f"mail{n}@x", "Student"])
        scores = []
        if n >= 2:  # two hand in nothing
            folder = home / "canvas"
            folder.mkdir(parents=True, exist_ok=True)
            scores.append(int(n % 5 > 0))
            (folder / f"{last}{first}_{1000 + n}_{7000 + n}_16_scale_math.py".lower()).write_text(
                RIGHT if scores[0] else WRONG
            )
        else:
            scores.append(0)
        if n >= 3:
            folder = home / "moodle" / f"{first} {last}_{500 + n}_assignsubmission_file_"
            folder.mkdir(parents=True)
            scores.append(int(n % 7 > 0))
            (folder / "16_scale_math.py").write_text(RIGHT if scores[1] else WRONG)
        else:
            scores.append(0)
        team = home / "groups" / f"{600 + n // 3}-98765 - {group[n]} - Nov 20, 2026 915 PM"
        team.mkdir(parents=True, exist_ok=True)
        scores.append(int(n // 3 % 4 > 0))
        (team / "16_scale_math.py").write_text(RIGHT if scores[2] else WRONG)
        earned.append(scores)
    for name, rows in (
        ("canvas", canvas_rows),
        ("groups", groups),
        ("worksheet", worksheet),
        ("gradescope", gradescope),
    ):
        (home / f"{name}.csv").write_text(
            csv_text(rows + rows[-1:] * (name in ("groups", "gradescope")))
        )
    return earned


@pytest.mark.slow
def test_a_term_on_three_platforms_has_one_row_for_each_student(tmp_path, capfd):
    earned = build_term(tmp_path)
    people = tmp_path / "people.toml"
    rosters = [tmp_path / f"{name}.csv" for name in ("canvas", "worksheet", "groups", "gradescope")]
    made = command("people", *rosters, "--to", people)
    assert (made.returncode, made.stdout) == (0, f"{people}: {COUNT} people\n"), made.stderr
    exports = {}
    folders = []
    for number, name in enumerate(("canvas", "moodle", "groups")):
        assignment = tmp_path / f"{name}.toml"
        assignment.write_text(
            f'title = "Homework {number + 1}"\nexercises = ["transformer_block_params"]\n'
            'people = "people.toml"\n'
        )
        folders.append(tmp_path / f"results-{name}")
        options = Options(Limits(sandbox=False), seed=1, stated=read_assignment(assignment))
        assert grade(tmp_path / name, folders[-1], lambda _: Known(), catalogue, options) == 0
        assert "not in the roster" not in capfd.readouterr().err
        rows = table_of(folders[-1] / "gradebook.csv")
        assert len(rows) == len({row["key"] for row in rows}) == COUNT
        # whatever platform the work came from, Canvas' gradebook takes the grades
        out = tmp_path / f"out-{name}.csv"
        done = command(
            "export", folders[-1], "--format", "canvas", "--to", out, "--gradebook", rosters[0]
        )
        assert "by the name alone" not in done.stderr
        exports[name] = {
            line["SIS User ID"]: line[f"Homework {number + 1}"]
            for line in table_of(out) if line["SIS User ID"]
        }  # fmt: skip
    handed_in = {"canvas": 2, "moodle": 3, "groups": 0}
    for number, (name, first) in enumerate(handed_in.items()):
        expected = {f"s{n}": str(earned[n][number]) if n >= first else "" for n in range(COUNT)}
        assert exports[name] == expected
    out = tmp_path / "worksheet-out.csv"
    command("export", folders[0], "--format", "moodle", "--to", out, "--gradebook", rosters[1])
    assert {row["Identifier"]: row["Grade"] for row in table_of(out)} == {
        f"Participant {500 + n}": str(10 * earned[n][0]) if n >= 2 else "" for n in range(COUNT)
    }
    done = command("term", *folders, "--to", tmp_path / "term", "--people", people)
    assert (done.returncode, done.stderr) == (0, "")
    book = table_of(tmp_path / "term" / "term.csv")
    totals = sorted((row["total"], row["max_total"]) for row in book)
    assert totals == sorted((str(sum(scores)), "3") for scores in earned)
