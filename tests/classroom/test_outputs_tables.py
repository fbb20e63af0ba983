"""The CSV files of a class, read back; and its files as a whole."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grader.classroom.exports import FORMATS, ExportRequest, export
from grader.classroom.names import is_key, key
from grader.classroom.pages import write
from grader.classroom.results import (
    COLUMNS,
    ClassResults,
    SubmissionRow,
    class_results,
    gradebook,
    nbgrader_gradebook,
    number,
    table,
    text,
)
from grader.classroom.store import Store, StoredSubmission
from grader.cli.main import make_parser
from grader.exercise.verdict import Status
from headcount.core.errors import RequestError
from tests.classes import (
    ASKED,
    HOSTILE,
    hostile_class,
    passed,
    small_class,
    without_points,
)

ROOT = Path(__file__).resolve().parents[2]

#: What makes a spreadsheet compute, by OWASP's list and its full-width forms.
TRIGGERS = tuple("=+-@\t\r\n＝＋－＠")


def read(data, delimiter=","):
    assert b"\x00" not in data
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig")), delimiter=delimiter))


@pytest.mark.parametrize("stranger", HOSTILE)
def test_a_strangers_text_is_a_cell_that_computes_nothing(stranger):
    cell = text(stranger)
    for begin in re.split(r"^|[;,|]", cell):
        assert not begin.lstrip(' "').startswith(TRIGGERS)
    assert all(c.isprintable() for c in cell)
    ((back,),) = csv.reader(io.StringIO(table([[cell]]).decode()))
    assert back == cell


def test_harmless_text_is_left_alone():
    for name in ("Zoë Nguyễn", "名前 太郎", "محمد", 'O\'Neil, Jo "J"', "1-2", "a=b"):
        assert text(name) == name
    assert text(None) == ""


def test_numbers_have_no_more_digits_than_points():
    assert [number(n) for n in (0.0, 1.0, 1 / 3, 2.5, 1000000.0)] == [
        "0", "1", "0.333", "2.5", "1000000",
    ]  # fmt: skip


def test_the_gradebook_has_every_row_and_the_course_in_order():
    rows = read(gradebook(small_class()))
    assert list(rows[0]) == [*COLUMNS, "broadcast", "exchange", "barrier"]
    assert [row["key"] for row in rows] == ["ada", "bob", "cyd", "dee", "eve", "fay"]
    said = [(row["score"], row["max_score"], row["status"]) for row in rows]
    assert said == [
        ("4", "4", "graded"),
        ("0.25", "3", "graded"),  # what could not be judged here does not count
        ("", "4", "error"),  # not final
        ("", "4", "error"),
        ("0", "4", "nothing handed in"),
        ("1", "4", "graded"),
    ]
    assert [row["barrier"] for row in rows] == ["1", "skipped", "error", "", "", ""]
    assert "sandbox could not be started" in rows[3]["notes"]
    assert rows[5]["notes"] == "graded without a sandbox"


@pytest.mark.parametrize("form", FORMATS)
def test_every_export_says_what_could_not_be_judged_and_who_has_no_grade(form, tmp_path):
    with Store(tmp_path) as store:
        store.course = tuple((asked.name, asked.chapter, asked.points) for asked in ASKED)
        for name, second in (
            ("ada", without_points(Status.SKIPPED, "needs a GPU", ASKED[1])),
            ("bob", without_points(Status.ERROR, "no memory", ASKED[1])),
        ):
            row_key = key(name.encode(), name)
            done = (passed(), second)
            store.note(
                0, StoredSubmission(row_key, name, "digest", [one.name for one in done], [], [])
            )
            for verdict in done:
                store.save(row_key, "mark", verdict)
    said = export(tmp_path, form, tmp_path / "to")
    who = {"gradescope": "results", "feedback": "page"}.get(form, "grade")
    unknown = "its number in Moodle is not known; give --gradebook"
    people = {"bob": "the grader failed on it; grade it again"}
    if form == "moodle":
        people = {"ada": unknown, "bob": unknown}
    assert said == [
        *(f"no {who} for {name}: {reason}" for name, reason in people.items()),
        "exchange could not be judged for 1 submission (needs a GPU); it does not count there,"
        " neither for nor against",
    ]


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_an_export_writes_a_file_or_a_folder_as_the_registry_says(form, tmp_path):
    with Store(tmp_path / "out") as store:
        store.note(0, StoredSubmission(key(b"ada", "ada"), "ada", "digest", [], [], []))
    to = tmp_path / "new" / "to"
    export(tmp_path / "out", form.name, to)
    assert (to.is_dir(), to.is_file()) == (form.is_folder, not form.is_folder)
    made = form.make(small_class(), ExportRequest())
    assert (bool(made.folder), bool(made.data)) == (form.is_folder, not form.is_folder)


def test_what_is_written_is_for_its_owner_alone(tmp_path):
    """Reports, tables and exports hold names and grades, under the usual umask."""
    before = os.umask(0o022)
    try:
        with Store(tmp_path / "out") as store:
            store.note(0, StoredSubmission(key(b"ada", "ada"), "ada", "digest", [], [], []))
            write(class_results(store), tmp_path / "out")
        for name in FORMATS:
            export(tmp_path / "out", name, tmp_path / name)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert len(modes) > 10
    assert {path: f"{mode:o}" for path, mode in modes.items() if mode & 0o077} == {}


def test_a_full_disk_leaves_the_old_file(tmp_path):
    with Store(tmp_path / "out") as store:
        store.note(0, StoredSubmission(key(b"ada", "ada"), "ada", "digest", [], [], []))
    to = tmp_path / "grades.csv"
    to.write_text("what was there")
    to.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(to)
    # a limit on the size of files ends a write as a full disk does
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
        with pytest.raises(RequestError, match="File too large"):
            export(tmp_path / "out", "csv", tmp_path / "link.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert to.read_text() == "what was there"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "grades.csv", "link.csv"}
    export(tmp_path / "out", "csv", tmp_path / "link.csv")
    assert "ada" in to.read_text()
    assert f"{stat.S_IMODE(to.stat().st_mode):o}" == "640"


def test_an_export_can_go_into_a_pipe(tmp_path):
    with Store(tmp_path / "out") as store:
        store.note(0, StoredSubmission(key(b"ada", "ada"), "ada", "digest", [], [], []))
    command = [sys.executable, "-m", "grader", "export", tmp_path / "out", "--format", "csv"]
    done = subprocess.run(
        [*command, "--to", "/dev/stdout"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "ada" in done.stdout


def test_only_forms_that_fill_in_a_gradebook_take_one(tmp_path):
    takers = [name for name, form in FORMATS.items() if form.fills_gradebook]
    assert takers == ["canvas", "moodle"]
    for name in FORMATS.keys() - set(takers):
        with pytest.raises(RequestError, match="--gradebook is for --format canvas or moodle"):
            export(tmp_path, name, tmp_path / "to", tmp_path / "book.csv")


def test_the_documentation_and_the_help_name_every_form_and_no_other():
    page = (ROOT / "docs" / "grading.md").read_text()
    shown = re.findall(
        r"^python -m grader export results/ --format (\S+) +--to (\S+)(.*)$", page, re.M
    )
    assert [(name, to, "--gradebook" in more) for name, to, more in shown] == [
        (form.name, form.target, form.fills_gradebook) for form in FORMATS.values()
    ]
    line = re.search(r"grader export RESULTS .* grades for (.*)", (ROOT / "README.md").read_text())
    assert line[1].split(", ") == [form.system for form in FORMATS.values()]
    (commands,) = make_parser()._subparsers._group_actions
    (option,) = (a for a in commands.choices["export"]._actions if a.dest == "format")
    assert option.choices == list(FORMATS)
    for form in FORMATS.values():
        assert f"{form.name}: {form.content}" in option.help
        assert form.system in make_parser().format_help()


def test_the_gradebook_opens_in_excel_with_its_letters():
    results = ClassResults("t", "now", (SubmissionRow("zoe", "Zoë"),))
    assert gradebook(results).startswith(b'\xef\xbb\xbf"student","key"')
    assert "Zoë".encode() in gradebook(results)


def test_a_hostile_class_is_one_line_each():
    rows = gradebook(hostile_class()).decode("utf-8-sig").split("\r\n")
    assert len(rows) == len(HOSTILE) + 2  # the header, and the end
    for row in read(gradebook(hostile_class())):
        for name in ("student", "email", "number", "notes"):
            assert not row[name].lstrip().startswith(TRIGGERS)


def test_what_nobody_was_asked_for_has_a_column_all_the_same():
    rows = (
        SubmissionRow("a", "A", exercises=(passed(ASKED[2]),)),
        SubmissionRow("b", "B", exercises=(passed(),)),
    )
    results = ClassResults("t", "now", rows, course=ASKED[1:2])
    assert [asked.name for asked in results.asked] == ["exchange", "broadcast", "barrier"]
    assert results.points == 4.0


@pytest.mark.parametrize(
    "key", ["", ".", "..", "a/b", "a\\b", "a\x00", "-rf", "é" * 120, "a\ud800"]
)
def test_a_key_that_is_no_file_name_is_refused(key):
    with pytest.raises(ValueError, match="no safe file name"):
        ClassResults("t", "now", (SubmissionRow(key, "x"),))


def test_keys_that_a_file_system_may_mix_up_are_refused():
    with pytest.raises(ValueError, match="two submissions"):
        ClassResults("t", "now", (SubmissionRow("Ada", "x"), SubmissionRow("ada", "y")))


def test_nbgraders_columns():
    data = nbgrader_gradebook(small_class())
    assert data.decode().splitlines()[0].replace('"', "") == (
        "assignment,duedate,timestamp,student_id,last_name,first_name,email,"
        "raw_score,late_submission_penalty,score,max_score"
    )
    rows = read(data)
    assert [row["student_id"] for row in rows] == [
        "101", "102", "103", "dee", "eve@example.edu", "106",
    ]  # fmt: skip
    assert (rows[5]["last_name"], rows[5]["first_name"]) == ("Fay", "Gus")
    assert (rows[0]["last_name"], rows[0]["first_name"]) == ("Ada Lovelace", "")
    assert [row["score"] for row in rows] == ["4", "0.25", "", "", "0", "1"]
    assert {row["assignment"] for row in rows} == {"Week 2"}
    assert len(read(nbgrader_gradebook(hostile_class()))) == len(HOSTILE)


def test_all_files_of_a_class(tmp_path):
    results = small_class()
    write(results, tmp_path)
    write(results, tmp_path)  # again, over what is there
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    keys = [row.key for row in results.rows]
    assert found == {
        "class.html", "gradebook.csv", "similar.html",
        *(f"results/{key}.json" for key in keys), *(f"feedback/{key}.html" for key in keys),
    }  # fmt: skip
    ada = json.loads((tmp_path / "results" / "ada.json").read_text())
    assert (ada["submission"], ada["score"], ada["max_score"]) == ("Ada Lovelace", 4.0, 4.0)
    assert [e["name"] for e in ada["exercises"]] == ["broadcast", "exchange", "barrier"]


def test_a_hostile_class_makes_files_that_can_be_read(tmp_path):
    results = hostile_class()
    write(results, tmp_path)
    for number_, name in enumerate(HOSTILE):
        read_back = json.loads((tmp_path / "results" / f"h{number_}.json").read_text("utf-8"))
        assert read_back["submission"] == name
    for path in tmp_path.rglob("*.html"):
        path.read_text("utf-8")


def test_files_of_who_was_withdrawn_go_and_nothing_else(tmp_path):
    """By their keys; what somebody else put into the folder stays, however it is named."""

    def graded(*names):
        rows = tuple(
            SubmissionRow(key(name.encode(), name), name, exercises=(passed(),)) for name in names
        )
        return ClassResults("Week 2", "2026-01-02T03:04:05+00:00", rows, ASKED)

    ada, bob = (row.key for row in graded("Ada", "Bob").rows)
    write(graded("Ada", "Bob"), tmp_path)
    others = [
        "results/notes.json",
        "results/bob.json",
        f"results/{bob}.json.bak",
        f"results/{bob}.html",
        f"results/x{bob.upper()}.json",
        f"feedback/{bob}",
        f"feedback/{bob}/page.html",
        f"{bob}.json",
        ".grader-notes",
    ]
    for name in others[:5] + others[6:]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    linked = tmp_path / "results" / f"{key(b'link', 'link')}.json"
    linked.symlink_to(tmp_path / "results" / "notes.json")
    for name in (".grader-unfinished.part", "results/.grader-unfinished.part"):
        (tmp_path / name).write_text("of a grader that was killed")
    write(graded("Ada"), tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {
        *others,
        str(linked.relative_to(tmp_path)),
        "results",
        "feedback",
        "class.html",
        "similar.html",
        "gradebook.csv",
        f"results/{ada}.json",
        f"feedback/{ada}.html",
    }


@pytest.mark.parametrize(
    "name", ["Ada", "", "Zoë Nguyễn", "名前", "../..", "x" * 300, "a" * 39 + " b"]
)
def test_a_key_is_known_as_one(name):
    made = key(name.encode(), name)
    assert is_key(made)
    assert not is_key(made.upper())
    assert not is_key(made[:-1])
    assert not is_key(made + "\n")
    assert not is_key("x" * 40 + made)
    assert not is_key("-" + made)
