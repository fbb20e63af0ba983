"""The layouts of classes: what each platform writes, and a folder too deep or too high."""

from __future__ import annotations

import itertools
import re
import time
import unicodedata
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from grader.classroom.arrivals import collect
from grader.classroom.layouts import LAYOUTS, LayoutQuestion
from grader.cli.main import make_parser
from headcount.core.errors import RequestError
from tests.classroom.test_arrivals import fill, found, problems, zipped

DOCS = Path(__file__).resolve().parents[2] / "docs"

BROADCAST = b"def broadcast(x, src):\n    pass\n"
EXCHANGE = b"def exchange(x):\n    pass\n"
WHO_AM_I = b"def who_am_i():\n    pass\n"


def receipt(name, user, label="Name"):
    """What Blackboard writes for every attempt."""
    return (
        f"{label}: {name} ({user})\r\nAssignment: HW2\r\n"
        "Date Submitted: Sunday, 3 March 2024 17:00:00 o'clock GMT\r\nCurrent Grade: Needs Grading"
        "\r\n\r\nComments:\r\nName: Somebody Else (else)\r\n"
    ).encode()


def layouts(source, **options):
    with collect(source, **options) as arrivals:
        return arrivals.layouts


def refusal(source, **options):
    """The one line that refuses a class."""
    with pytest.raises(LayoutQuestion) as caught, collect(source, **options):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- Blackboard ----------------------------------------------------------------------------

BLACKBOARD = {
    "HW_2_j_smith_attempt_2024-03-03-11-00-00.txt": receipt("John Smith", "j_smith"),
    "HW_2_j_smith_attempt_2024-03-03-11-00-00_p1.ipynb": b"old 1",
    "HW_2_j_smith_attempt_2024-03-03-11-00-00_p2.ipynb": b"old 2",
    "HW_2_j_smith_attempt_2024-03-03-11-00-00_withdrawn.ipynb": b"old 3",
    "HW_2_j_smith_attempt_2024-03-03-17-00-00.txt": receipt("John Smith", "j_smith"),
    "HW_2_j_smith_attempt_2024-03-03-17-00-00_p1.ipynb": b"new 1",
    "HW_2_j_smith_attempt_2024-03-03-17-00-00_p2.ipynb": b"new 2",
    "HW_2_alee_attempt_2024-03-02-09-00-00_notes.txt": b"hello",
    "HW_2_alee_attempt_2024-03-02-09-00-00_mine.zip": zipped({"a/a.py": b"a"}),
    "HW_2_bo_attempt_2024-03-02-09-00-00.txt": receipt("Bo Ng", "bo"),
}


def test_blackboard_takes_all_files_of_the_newest_attempt(tmp_path):
    fill(tmp_path, BLACKBOARD)
    assert layouts(tmp_path) == {"blackboard": 3}
    assert found(tmp_path) == {
        "John Smith": {"p1.ipynb": b"new 1", "p2.ipynb": b"new 2"},
        "alee": {"mine.zip/a/a.py": b"a"},
        "Bo Ng": {},
    }
    assert problems(tmp_path) == {
        "John Smith": (
            "handed in 2 times: the newest, of 2024-03-03 17:00:00, is graded;"
            " not graded: 2024-03-03 11:00:00",
        ),
        "Bo Ng": ("no .py or .ipynb file was handed in",),
    }
    with collect(tmp_path) as arrivals:
        assert {one.student: one.number for one in arrivals.submissions} == {
            "John Smith": "j_smith",
            "alee": "alee",
            "Bo Ng": "bo",
        }


def test_blackboards_zip_and_what_stands_in_a_folder_are_the_same(tmp_path):
    fill(tmp_path, {"gradebook_CS1_HW2_2024-03-03-18-00-00.zip": zipped(BLACKBOARD)})
    archive = tmp_path / "gradebook_CS1_HW2_2024-03-03-18-00-00.zip"
    assert found(archive) == found(fill(tmp_path / "class", BLACKBOARD))


@pytest.mark.parametrize("label", ["Naam", "Nombre", "Имя", "名前", "Nom de l'étudiant"])
def test_blackboards_receipt_is_read_in_any_language(tmp_path, label):
    name = "HW2_jsmith_attempt_2024-03-03-11-00-00"
    text = b"\xef\xbb\xbf" + receipt("Jürgen Smith-Müller", "jsmith", label)
    fill(tmp_path, {f"{name}.txt": text, f"{name}_a.py": b"a"})
    assert found(tmp_path) == {"Jürgen Smith-Müller": {"a.py": b"a"}}


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe\x00", b"Name: (x)\n", b"Name: Eve (other)\n", b"x" * 10_000]
)
def test_a_receipt_that_says_nothing_of_the_user_leaves_the_files_name(tmp_path, text):
    name = "HW2_jsmith_attempt_2024-03-03-11-00-00"
    other = "HW2_alee_attempt_2024-03-03-11-00-00"
    fill(tmp_path, {f"{name}.txt": text, f"{name}_a.py": b"a", f"{other}_b.py": b"b"})
    assert found(tmp_path) == {"jsmith": {"a.py": b"a"}, "alee": {"b.py": b"b"}}


def test_an_attempt_without_a_file_to_grade_does_not_hide_the_one_before(tmp_path):
    start = "HW2_al_attempt_2024-03-0"
    fill(tmp_path, {f"{start}1-09-00-00_a.py": b"a", f"{start}2-09-00-00_why.pdf": b"%PDF"})
    (student,) = found(tmp_path).values()
    assert student == {"a.py": b"a"}
    assert "the newest with a file to grade, of 2024-03-01 09:00:00" in str(problems(tmp_path))


def test_attempts_at_two_assignments_do_not_replace_one_another(tmp_path):
    names = {
        "HW1_al_attempt_2024-01-01-09-00-00": b"one",
        "HW2_al_attempt_2024-02-01-09-00-00": b"two",
        "HW2_al_attempt_2024-02-02-09-00-00": b"two again",
    }
    for name, contents in names.items():
        fill(tmp_path, {f"{name}.txt": receipt("Al", "al"), f"{name}_{name[:3]}.py": contents})
    assert found(tmp_path) == {"Al": {"HW1.py": b"one", "HW2.py": b"two again"}}


def test_users_of_blackboard_without_receipts_are_not_merged(tmp_path):
    """``j_smith`` and ``a_smith`` end in the same word."""
    files = {
        f"HW_2_{u}_attempt_2024-01-01-09-00-00_a.py": u.encode() for u in ("j_smith", "a_smith")
    }
    assert found(fill(tmp_path, files)) == {
        "j_smith": {"a.py": b"j_smith"},
        "a_smith": {"a.py": b"a_smith"},
    }


def test_a_file_that_was_downloaded_before_and_handed_in_again_keeps_its_owner(tmp_path):
    inner = "HW1_eve_attempt_2023-01-01-00-00-00_a.py"
    files = {
        f"HW2_al_attempt_2024-01-01-09-00-00_{inner}": b"al",
        "HW2_eve_attempt_2024-01-01-09-00-00_b.py": b"eve",
    }
    assert found(fill(tmp_path, files)) == {"al": {inner: b"al"}, "eve": {"b.py": b"eve"}}


# ---- Brightspace ---------------------------------------------------------------------------

BRIGHTSPACE = {
    "index.html": b"<html>",
    "201-77 - Ann Lee - Sep 3, 2019 1159 PM/hw2.ipynb": b"old",
    "201-77 - Ann Lee - Sep 4, 2019 1201 AM/hw2 (1).ipynb": b"new",
    "201-77 - Ann Lee - Sep 3, 2019 900 AM/hw1.ipynb": b"first",
    "202-77 - Ann Lee - Sep 3, 2019 1000 AM/hw2.ipynb": b"another Ann",
    "203-77 - Jean - Luc - 4 septembre 2019 0930/x.zip": zipped({"b.py": b"b"}),
}


def test_brightspace_adds_up_what_is_handed_in_and_takes_the_newest_of_a_name(tmp_path):
    fill(tmp_path, BRIGHTSPACE)
    fill(tmp_path, {"all/HW2 Download Sep 5, 2019 1015 AM.zip": zipped(BRIGHTSPACE)})
    archive = tmp_path / "all" / "HW2 Download Sep 5, 2019 1015 AM.zip"
    with collect(archive) as arrivals:
        assert arrivals.layouts == {"brightspace": 3}
        rows = {
            (one.student, one.number): {file.label: file.read() for file in one.files}
            for one in arrivals.submissions
        }
        notes = {one.number: one.problems for one in arrivals.submissions}
    assert rows == {
        ("Ann Lee", "201"): {"hw1.ipynb": b"first", "hw2 (1).ipynb": b"new"},
        ("Ann Lee", "202"): {"hw2.ipynb": b"another Ann"},
        ("Jean - Luc", "203"): {"x.zip/b.py": b"b"},
    }
    assert notes["201"][0] == (
        "handed in 3 times: the files of 2019-09-04 00:01:00 and 2019-09-03 09:00:00 are graded,"
        " and of equal names the newest; not graded: 2019-09-03 23:59:00"
    )
    assert "looks the same" in notes["202"][0]
    assert notes["203"] == ()


def test_brightspaces_number_of_the_assignment_may_stand_first(tmp_path):
    files = {f"77-{n} - {who} - Sep 3, 2019 1159 PM/a.py": b"" for n, who in ((5, "Al"), (6, "Bo"))}
    with collect(fill(tmp_path, files)) as arrivals:
        assert [one.number for one in arrivals.submissions] == ["5", "6"]


def test_brightspaces_flat_files(tmp_path):
    files = {
        "201-77 - Ann Lee - Sep 3, 2019 1159 PM - hw2.ipynb": b"a",
        "201-77 - Ann Lee - Sep 3, 2019 1159 PM - part - two.py": b"b",
    }
    assert found(fill(tmp_path / "dated", files)) == {
        "Ann Lee": {"hw2.ipynb": b"a", "part - two.py": b"b"}
    }
    files = {"201-77 - Ann Lee - hw 2 - 2024.py": b"a", "202-77 - Bo Ng - c.py": b"c"}
    assert found(fill(tmp_path / "plain", files)) == {
        "Ann Lee": {"hw 2 - 2024.py": b"a"},
        "Bo Ng": {"c.py": b"c"},
    }


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Sep 3, 2019 1159 PM", (2019, 9, 3, 23, 59)),
        ("September 3, 2019 12:05 AM", (2019, 9, 3, 0, 5)),
        ("3 Sep, 2019 900", (2019, 9, 3, 9, 0)),
        ("3 août 2019 2359", (2019, 8, 3, 23, 59)),
        ("3 März 2019 23_59", (2019, 3, 3, 23, 59)),
        ("3 juillet 2019 0800", (2019, 7, 3, 8, 0)),
        ("3 juin 2019 0800", (2019, 6, 3, 8, 0)),
        ("2019-09-03 2359", (2019, 9, 3, 23, 59)),
        ("03-09, 2019 1159 PM", ()),  # is it March?
        ("mardi 3 septembre 2019 08:00", (2019, 9, 3, 8, 0)),  # no March
        ("Feb 31, 2019 1159 PM", ()),
        ("2019", ()),
    ],
)
def test_dates_as_brightspace_writes_them(tmp_path, text, moment):
    with collect(fill(tmp_path, {f"201-77 - Ann - {text}/a.py": b""})) as arrivals:
        (ann,) = arrivals.submissions
    assert (ann.student, ann.platform) == ("Ann", "brightspace")
    assert ann.handed_in == (datetime(*moment) if moment else None)


def test_attempts_whose_dates_cannot_be_read_are_asked_about(tmp_path):
    once = {"201-77 - Ann - 03-09, 2019 1159 PM/a.py": b"a"}
    assert found(fill(tmp_path / "once", once)) == {"Ann": {"a.py": b"a"}}
    fill(tmp_path / "twice", once | {"201-77 - Ann - 04-09, 2019 1159 PM/a.py": b"b"})
    assert "'03-09, 2019 1159 PM'" in refusal(tmp_path / "twice")


# ---- Sakai ---------------------------------------------------------------------------------

SAKAI = {
    "HW2/grades.csv": b"HW2,Points\n",
    "HW2/Lee, Ann(alee)/timestamp.txt": b"20240303170000000",
    "HW2/Lee, Ann(alee)/comments.txt": b"well done",
    "HW2/Lee, Ann(alee)/Lee, Ann(alee)_submissionText.html": b"<p>",
    "HW2/Lee, Ann(alee)/Submission attachment(s)/hw2.ipynb": b"a",
    "HW2/Lee, Ann(alee)/Feedback Attachment(s)/hw2.ipynb": b"corrected",
    "HW2/Lee, Ann(ann2)/timestamp.txt": b"20240303170000000",
    "HW2/Lee, Ann(ann2)/Submission attachment(s)/mine.zip": zipped({"b.py": b"b"}),
    "HW2/Ng, Bo(bo)/Feedback Attachment(s)/hw2.ipynb": b"corrected",
    "HW2/Oh, Cy (Cyd)(cy)/": b"",
}


def test_sakai_grades_what_was_handed_in_and_not_what_was_handed_back(tmp_path):
    fill(tmp_path, {"bulk_download.zip": zipped(SAKAI)})
    fill(tmp_path / "class", SAKAI)
    for source in (tmp_path / "bulk_download.zip", tmp_path / "class", tmp_path / "class/HW2"):
        with collect(source) as arrivals:
            assert arrivals.layouts == {"sakai": 4}
            assert [
                (one.student, one.number, [(f.label, f.read()) for f in one.files])
                for one in arrivals.submissions
            ] == [
                ("Lee, Ann", one, files)
                for one, files in sorted(
                    {"alee": [("hw2.ipynb", b"a")], "ann2": [("mine.zip/b.py", b"b")]}.items()
                )
            ] + [("Ng, Bo", "bo", []), ("Oh, Cy (Cyd)", "cy", [])]


def test_sakai_without_folders(tmp_path):
    files = {
        "Lee, Ann(alee)_Submission attachment(s)_hw2.ipynb": b"a",
        "Lee, Ann(alee)_Feedback Attachment(s)hw2.ipynb": b"corrected",
        "Lee, Ann(alee)_comments.txt": b"",
        "Ng, Bo(bo)_timestamp.txt": b"",
    }
    assert found(fill(tmp_path, files)) == {"Lee, Ann": {"hw2.ipynb": b"a"}, "Ng, Bo": {}}


def test_sakais_folders_in_another_language(tmp_path):
    one = {"Lee, Ann(a)/timestamp.txt": b"", "Lee, Ann(a)/Adjuntos/hw2.ipynb": b"a"}
    assert found(fill(tmp_path / "one", one)) == {"Lee, Ann": {"Adjuntos/hw2.ipynb": b"a"}}
    fill(tmp_path / "two", one | {"Lee, Ann(a)/Comentarios/hw2.ipynb": b"corrected"})
    assert "Adjuntos and Comentarios one may hold feedback" in refusal(tmp_path / "two")


# ---- nbgrader ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "time",
    [
        *("", "soon", "2026-11-10 10:00:00 America", "2026-11-10 10:00:00 Nowhere/Else"),
        *("2026-11-10 10:00:00 ../x", "2026-11-10 10:00:00 " + "x" * 300),
    ],
)
def test_a_timestamp_that_says_no_time_is_its_students_problem(tmp_path, time):
    files = {f"submitted/{who}/ps1/a.py": b"" for who in ("al", "bo")}
    fill(tmp_path, files | {"submitted/al/ps1/timestamp.txt": time.encode()})
    assert problems(tmp_path) == {"al": ("ps1/timestamp.txt says no time",)}


# ---- several layouts, and marks ------------------------------------------------------------


def test_a_download_is_one_platforms_and_what_else_is_there_is_called_by_its_name(tmp_path):
    files = {
        "annlee_101_9001_lab.py": b"a",
        "bobm_LATE_102_9002_lab.py": b"b",
        "diro_103_9003_lab.py": b"d",
        "HW2_cy_attempt_2024-03-02-09-00-00_lab.py": b"c",
        "by email.py": b"e",
    }
    fill(tmp_path, files)
    assert layouts(tmp_path) == {"canvas": 3, "files": 2}
    with collect(tmp_path) as arrivals:
        rows = [(o.student, o.number, [f.read() for f in o.files]) for o in arrivals.submissions]
    assert rows == [
        ("annlee", "101", [b"a"]),
        ("bobm", "102", [b"b"]),
        ("by email", None, [b"e"]),
        ("diro", "103", [b"d"]),
        ("HW2_cy_attempt_2024-03-02-09-00-00_lab", None, [b"c"]),
    ]
    said = problems(tmp_path)
    assert said["bobm"] == ("marked late: lab.py",)
    assert said[None][0].startswith(
        "HW2_cy_attempt_2024-03-02-09-00-00_lab.py and by email.py: not a name of Canvas' download;"
    )
    fill(tmp_path, {"HW2_ed_attempt_2024-03-02-09-00-00_lab.py": b""})
    assert "no name there tells" in refusal(tmp_path)
    assert layouts(tmp_path, layout="blackboard") == {"blackboard": 2}


def test_names_with_two_numbers_are_not_canvas(tmp_path):
    """An upload's number is given once."""
    files = {"hw_1_2_ann.py": b"a", "hw_1_2_bob.py": b"b", "hw_1_2_cy.py": b"c"}
    fill(tmp_path, files)
    assert "holds hw_1_2_ann.py, hw_1_2_bob.py and hw_1_2_cy.py, and no name" in refusal(tmp_path)
    assert found(tmp_path, layout="files").keys() == {"hw_1_2_ann", "hw_1_2_bob", "hw_1_2_cy"}


def test_late_is_a_mark_and_no_name(tmp_path):
    fill(tmp_path, {"ann_LATE.py": b"a", "bob/b.py": b"b", "cy_LATE/c.py": b"c"})
    assert found(tmp_path, layout="mixed").keys() == {"ann", "bob", "cy"}
    assert problems(tmp_path, layout="mixed") == {
        "ann": ("marked late: ann_LATE.py",),
        "cy": ("marked late: cy_LATE",),
    }


@pytest.mark.parametrize("second", ["ann (1).py", "ann-Copy1.py", "ann copy.py", "Ann (2).py"])
def test_a_second_file_of_a_name_is_a_student_apart_and_it_is_said(tmp_path, second):
    fill(tmp_path, {"ann.py": b"a", second: b"b"})
    assert len(found(tmp_path, layout="files")) == 2
    said = problems(tmp_path, layout="files")
    assert all("looks the same" in notes[0] for notes in said.values())


# ---- where no platform has named anything --------------------------------------------------

FOLDERS, FILES, MIXED = "folders", "files", "mixed"

#: What an instructor may name, and the layout that fits if each entry is one student's.
UNTOLD = {
    "a student's chapters": (
        {"01_point_to_point.ipynb": b"", "02_broadcast (1).ipynb": b""},
        FILES,
    ),
    "a student's work": ({"hw2.ipynb": b"", "helpers.py": b"", "data/x.csv": b""}, MIXED),
    "a student's one file": ({"answers.py": b""}, FILES),
    "a student's assignments": ({"ps1/p.ipynb": b"", "ps2/q.ipynb": b""}, FOLDERS),
    "a class": ({"al/hw2.ipynb": BROADCAST, "bo/hw2.ipynb": BROADCAST}, FOLDERS),
    "a class of one": ({"al/hw1.ipynb": BROADCAST, "al/hw2.ipynb": EXCHANGE}, FOLDERS),
    "parts": ({f"{n}/part{p}/a.py": BROADCAST for n in ("al", "bo") for p in (1, 2)}, FOLDERS),
    "numbers": ({"student1/a.py": b"", "student2/a.py": b"", "12345/a.py": b""}, FOLDERS),
    "files": (
        {"al.py": BROADCAST, "bo.ipynb": BROADCAST, "cy.zip": zipped({"a.py": b""})},
        FILES,
    ),
    "folders and files": ({"al/a.py": b"", "bo.py": b""}, MIXED),
    "a download in one's folder": ({"al/al_1_2_a.py": b"", "bo/bo_3_4_a.py": b""}, FOLDERS),
    "sections": ({f"{p}/hw2.ipynb": b"" for p in ("A/al", "A/bo", "B/cy", "B/di")}, FOLDERS),
    "one section": ({"cs1/al/a.py": b"", "cs1/bo/b.py": b""}, FOLDERS),
    "weeks": ({f"week{w}/{n}.py": b"" for w in (1, 2) for n in ("al", "bo")}, FOLDERS),
    "courses of nbgrader": (
        {f"{c}/submitted/{n}/ps1/p.py": b"" for c in "xy" for n in ("al", "bo")},
        FOLDERS,
    ),
}


@pytest.mark.parametrize("kind", UNTOLD)
def test_what_no_platform_has_named_is_asked_about_and_graded_as_is_said(tmp_path, kind):
    files, fitting = UNTOLD[kind]
    text = refusal(fill(tmp_path / "here", files))
    assert re.findall(r"--layout (\w+) ", text) == [fitting, "student"]
    assert LAYOUTS[fitting].title in text
    entries = {path.split("/")[0] for path in files}
    assert all(entry in text for entry in sorted(entries)[:3])
    students = found(tmp_path / "here", layout=fitting)
    assert students.keys() == {name.rpartition(".")[0] or name for name in entries}
    # all is graded, and nothing twice
    work = [path for path in files if path.endswith((".py", ".ipynb", ".zip"))]
    assert sum(map(len, students.values())) == len(work)
    (everything,) = found(tmp_path / "here", layout="student").items()
    assert everything[0] == "here"
    assert len(everything[1]) == len(work)


@pytest.mark.parametrize(
    "path",
    [
        "Ann Lee_501_assignsubmission_file_",
        "201-77 - Ann Lee - Sep 3, 2019 1159 PM",
        "Lee, Ann(alee)",
        "Lee, Ann(alee)/Submission attachment(s)",
    ],
)
def test_a_folder_that_a_platform_has_named_for_one_student_is_asked_about(tmp_path, path):
    place = path if "/" in path or "(" not in path else f"{path}/Submission attachment(s)"
    fill(tmp_path, {f"{place}/mine.py": b"a"})
    assert "or name the folder of the class" in refusal(tmp_path / path)


def test_a_students_archive_from_a_platform_is_asked_about(tmp_path):
    name = "HW2_alee_attempt_2024-03-02-09-00-00_mine.zip"
    fill(tmp_path, {name: zipped({"a.py": b"a", "b.py": b"b"})})
    assert "or name the folder of the class" in refusal(tmp_path / name)


# ---- a class inside what would be one student's --------------------------------------------

CLASSES = {
    "downloads": {
        f"{kind}/{name}": b""
        for kind, names in {
            "x": (
                "HW_al_attempt_2024-01-01-00-00-00_a.py",
                "HW_bo_attempt_2024-01-01-00-00-00_a.py",
            ),
            "y": ("al_1_2_a.py", "bo_3_4_a.py"),
        }.items()
        for name in names
    },
    "one download": {"al/a.py": b"", "x/al_1_2_a.py": b"", "x/bo_3_4_a.py": b""},
    "Sakai's": {
        f"{lab}/{who}/Submission attachment(s)/a.py": b""
        for lab in "xy"
        for who in ("A(a)", "B(b)")
    },
    "exports": {
        f"{n}/submission_metadata.yml": b"s1:\n  :submitters: []\ns2:\n  :submitters: []\n"
        for n in "xy"
    },
}


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_in_what_would_be_one_students_is_refused(tmp_path, kind):
    text = refusal(fill(tmp_path / "all", CLASSES[kind]))
    assert re.search(r"x holds the work of 2 students from ", text)
    assert "by itself" in text
    assert len(found(tmp_path / "all" / "x")) == 2


@pytest.mark.parametrize("place", ["x", "x.zip/within"])
def test_a_class_inside_what_stands_beside_another_costs_that_row_alone(tmp_path, place):
    """A student may have made it."""
    names = {"al_1_2_a.py": b"", "bo_3_4_a.py": b""}
    within = {f"within/{name}": b"" for name in names}
    inside = {"x.zip": zipped(within)} if "." in place else {f"x/{name}": b"" for name in names}
    fill(tmp_path, {"cy_5_6_a.py": b"", "di_7_8_a.py": b""} | inside)
    assert {who: len(files) for who, files in found(tmp_path).items()} == {"cy": 1, "di": 1, "x": 0}
    said = problems(tmp_path)["x"]
    assert said[0].startswith(f"{place} holds the work of 2 students from Canvas' download")


def test_an_instructor_who_says_that_each_is_a_student_is_believed(tmp_path):
    fill(tmp_path, CLASSES["downloads"])
    assert found(tmp_path, layout="folders").keys() == {"x", "y"}


# ---- what is ordinary ----------------------------------------------------------------------


def test_a_file_that_is_named_itself_is_not_asked_about(tmp_path):
    fill(tmp_path, {"hw2.ipynb": b"a", "HW2_al_attempt_2024-03-02-09-00-00_a.py": b"b"})
    assert found(tmp_path / "hw2.ipynb") == {"hw2": {"hw2.ipynb": b"a"}}
    assert len(found(tmp_path / "HW2_al_attempt_2024-03-02-09-00-00_a.py")) == 1


# ---- what the instructor says --------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_that_is_said_and_not_there_is_said_to_be_so(tmp_path, name):
    files = {"al.py": b"a"} if name in ("folders", "nbgrader") else {"al/a.py": b"a"}
    files = {"al.cpp": b"a", "data.zip.txt": b""} if name == "mixed" else files
    fill(tmp_path, files)
    if name == "student":
        assert len(found(tmp_path, layout=name)) == 1
        return
    if name == "folders":
        assert found(fill(tmp_path, {"bo/b.py": b"b"}), layout=name) == {"bo": {"b.py": b"b"}}
        assert problems(tmp_path, layout=name) == {
            None: ("al.py is not graded: not laid out as folders (each folder is one student's)",)
        }
        return
    if name == "mixed":
        with pytest.raises(RequestError, match="holds no submissions"):
            collect(tmp_path, layout=name)
        return
    text = refusal(tmp_path, layout=name)
    assert f"laid out as {name}" in text
    assert LAYOUTS[name].shape in text


def test_an_unknown_layout_is_refused_with_those_that_are_known():
    with pytest.raises(RequestError) as caught:
        make_parser().parse_args(["grade", "x", "--out", "y", "--layout", "zip"])
    assert all(name in str(caught.value) for name in LAYOUTS)


def test_help_documentation_and_refusal_name_every_layout(tmp_path, capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["grade", "--help"])
    said = "".join(capsys.readouterr().out.split())
    docs = (DOCS / "grading.md").read_text()
    text = refusal(fill(tmp_path / "al", {"hw2.py": b""}))
    for layout in LAYOUTS.values():
        assert "".join(f"{layout.name} ({layout.title})".split()) in said
        assert f"| `{layout.name}` | {layout.title} | `{layout.shape}` |" in docs
        assert layout.title in text or layout.name in ("folders", "mixed")
    rows = [line for line in docs.splitlines() if line.startswith("| `") and line.count("|") == 4]
    assert len([row for row in rows if row.split("`")[1] in LAYOUTS]) == len(LAYOUTS)


# ---- hostile names -------------------------------------------------------------------------

PATTERNS = {
    "blackboard": "HW2_{}_attempt_2024-03-02-09-00-00_a.py",
    "brightspace": "{number}-7 - {} - Sep 3, 2019 1159 PM/a.py",
    "moodle": "{}_{number}_assignsubmission_file_/a.py",
    "sakai": "Lee({})/Submission attachment(s)/a.py",
    "canvas": "{}_{number}_{number}_a.py",
}
USERS = [
    *("Ann", "ann", "ANN", "é", "e\u0301", "..", "--out", "a\nb", "<b>", "=1+1", "\x1b[31m"),
    *("\u202eexe", "x" * 150, "名前", "_attempt_", "a_b", "b", "_", " ", "con", "nul.txt"),
]


@pytest.mark.parametrize("kind", PATTERNS)
def test_hostile_users_are_told_apart(tmp_path, kind):
    files = {
        PATTERNS[kind].format(user, number=number): f"{number}".encode()
        for number, user in enumerate(USERS, 100)
    }
    archive = zipped(files)
    fill(tmp_path, {"in/c.zip": archive})
    with collect(tmp_path / "in/c.zip") as arrivals:
        contents = [file.read() for one in arrivals.submissions for file in one.files]
        assert sorted(contents) == sorted(files.values())
        assert arrivals.layouts == {kind: len(USERS)}
        keys = {one.key.casefold() for one in arrivals.submissions}
        assert len(keys) == len(USERS)
        assert all(one.student.isprintable() for one in arrivals.submissions)
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "c.zip"]


def test_a_receipt_and_a_name_in_other_forms_of_unicode_are_one(tmp_path):
    """A Mac stores names in another form than the receipt has them."""
    for form, other in itertools.permutations(("NFC", "NFD")):
        name = unicodedata.normalize(form, "HW2_zoë_attempt_2024-03-02-09-00-00")
        text = receipt("Zoë", unicodedata.normalize(other, "zoë"))
        fill(tmp_path / form, {f"{name}.txt": text, f"{name}_a.py": b"a"})
        assert found(tmp_path / form) == {"Zoë": {"a.py": b"a"}}


def test_the_terminal_is_safe_from_a_receipt(tmp_path):
    name = "HW2_al_attempt_2024-03-02-09-00-00"
    fill(tmp_path, {f"{name}.txt": receipt("\x1b[31mAl\u202e", "al"), f"{name}_a.py": b"a"})
    assert list(found(tmp_path)) == ["\\x1b[31mAl\\u202e"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(PATTERNS.values())),
            st.text(
                st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20
            ),
        ),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_any_names_are_sorted_out_or_asked_about(tmp_path, names):
    """No entry is lost, and none is another student's."""
    files = {
        pattern.format(user, number=number): b"%d" % number
        for number, (pattern, user) in enumerate(names, 100)
    }
    fill(tmp_path, {"c.zip": zipped(files)})
    try:
        with collect(tmp_path / "c.zip") as arrivals:
            held = [[file.read() for file in one.files] for one in arrivals.submissions]
    except RequestError:
        return
    assert all(len(files) <= 1 for files in held)


#: How platforms name a file of a student's, and what a student may take from each.
NAMINGS = [
    *("HW2_{}_attempt_2024-03-02-09-00-00_", "{n}-7 - {} - Sep 3, 2019 1159 PM/", "{n}-7 - {} - "),
    *("{n}-7 - {} - Sep 3, 2019 1159 PM - ", "{}_{n}_assignsubmission_file_/"),
    *("{}_{n}_assignsubmission_file_", "{}({n})/Submission attachment(s)/", "{}_{n}_{u}_"),
    *("{}({n})_Submission attachment(s)_", "submitted/{}/ps1/", "anon_{n}_{u}_"),
]
PIECES = [
    *(
        "bob",
        "102",
        "_",
        " - ",
        "(102)",
        ".",
        ".txt",
        ".py",
        "2024",
        "_102_1027_",
        "102-7 - bob - ",
    ),
    *("_attempt_2024-03-02-09-00-00", "_102_assignsubmission_file_", "_102_assignfeedback_file_"),
    *(
        "bob(102)_Submission attachment(s)_",
        "_timestamp.txt",
        "timestamp.txt",
        "LATE_",
        "_text.html",
    ),
    *("/", "/Feedback attachment(s)/", "/Submission attachment(s)/", "submission_metadata.yml"),
]


@pytest.mark.parametrize("naming", NAMINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    names=st.lists(
        st.lists(
            st.sampled_from(PIECES) | st.text(st.characters(codec="utf-8"), max_size=3),
            min_size=1,
            max_size=6,
        ).map("".join),
        min_size=1,
        max_size=3,
    ),
    others=st.sampled_from([0, 2]),
)
@example(
    others=2,
    names=[
        *("x_bob_attempt_2024-03-02-09-00-00_hw.py", "x_102_1027_hw.py", "x - 2024 - hw.py"),
        *("x_102_assignsubmission_file_hw.py", "x(102)_Submission attachment(s)_hw.py"),
    ],
)
@example(others=0, names=["_attempt_2024-03-02-09-00-00 - "])
@example(others=2, names=["._102_1027_"])
@example(others=0, names=["2024_102_assignsubmission_file_102-7 - bob - "])
@example(others=0, names=["x - 2024 - hw"])
def test_no_name_that_a_student_gives_to_a_file_changes_whose_work_is_whose(
    tmp_path, naming, names, others
):
    def rows(*uploads):
        given = [*(("mal", 101, one) for one in uploads), ("bob", 102, "a.py"), ("cy", 103, "a.py")]
        files = {
            naming.format(who, n=n, u=5000 + u) + name: who.encode()
            for u, (who, n, name) in enumerate(given[: len(uploads) + others])
        }
        fill(tmp_path, {"c.zip": zipped(files)})
        with collect(tmp_path / "c.zip") as arrivals:
            return {
                (one.key, one.student, one.number, one.platform): {
                    file.read() for file in one.files
                }
                - ({b"mal"} if one.student in ("mal", "HW2_mal", "anon_101") else set())
                for one in arrivals.submissions
            }

    parts = [["." if p == ".." else p for p in re.split(r"[/\\\0]+", name)] for name in names]
    ends = ["/".join(part) if naming.endswith("/") else "".join(part) for part in parts]
    assert rows(*(end or "x" for end in ends)) == rows("a.py")


@pytest.mark.parametrize("character", [" ", "(", "_1", "- ", " - ", "a_1_2_", "_attempt_2024-"])
def test_names_without_end_take_no_time(tmp_path, character):
    """Of members of an archive, which are longer than a disk allows."""
    name = character * (60_000 // len(character))
    members = {f"{n}{name}.py": b"" for n in range(5)} | {f"{n}{name}(": b"" for n in range(5)}
    fill(tmp_path, {"al.zip": zipped(members | {"timestamp.txt": b""})})
    before = time.process_time()
    assert "--layout files" in refusal(tmp_path / "al.zip")
    assert len(found(tmp_path / "al.zip", layout="student")["al"]) == 5
    assert time.process_time() - before < 3


def test_an_archive_of_one_student_is_called_by_its_name(tmp_path):
    fill(tmp_path, {"al.zip": zipped({"hw2.py": b"a", "helpers.py": b"b"})})
    assert "--layout student" in refusal(tmp_path / "al.zip")
    assert found(tmp_path / "al.zip", layout="student") == {
        "al": {"hw2.py": b"a", "helpers.py": b"b"}
    }


def test_a_class_in_an_archive_that_wraps_it_loses_nobody(tmp_path):
    """With the layout said: a folder of the archive's own name is no student."""
    fill(tmp_path, {"c.zip": zipped({"c/al/a.py": b"a", "c/bo/b.py": b"b"})})
    assert found(tmp_path / "c.zip", layout="folders") == {
        "al": {"a.py": b"a"},
        "bo": {"b.py": b"b"},
    }
    fill(tmp_path, {"d.zip": zipped({"d/al.py": b"a", "d/bo.py": b"b"})})
    assert found(tmp_path / "d.zip", layout="files") == {
        "al": {"al.py": b"a"},
        "bo": {"bo.py": b"b"},
    }
    fill(tmp_path, {"al.zip": zipped({"al/a.py": b"a"})})
    assert found(tmp_path / "al.zip", layout="folders") == {"al": {"a.py": b"a"}}
