"""What a person decides beside the judge: decisions, verdicts repeated, a term of assignments."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from grader.classroom.assignment import Assignment
from grader.classroom.command import lateness_of_arrivals
from grader.classroom.exports import export
from grader.classroom.marking import MarkRequest, mark
from grader.classroom.names import key
from grader.classroom.pages import feedback, write
from grader.classroom.results import class_results
from grader.classroom.store import Store, StoredSubmission
from grader.exercise.verdict import Status
from grader.sandbox.sandboxes import missing
from headcount.core.errors import RequestError
from tests.classes import ASKED, failed, passed
from tests.classroom.test_grade import FOLDERS, HEAD, RIGHT, WRONG, grade

ROOT = Path(__file__).resolve().parents[2]
DUE = datetime(2026, 11, 20, 23, 59, tzinfo=timezone.utc)

ADA, BOB, CYD = (key(name.encode(), name) for name in ("Ada Lovelace", "Bob", "Ada Byron"))


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "grader", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


def marked(folder, *arguments):
    done = command("mark", folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fill(folder, *rows, title="Week 2", due=DUE):
    """Store a class without judging it: key, name, number and verdicts of each."""
    with Store(folder) as store:
        store.assignment = Assignment(title, ASKED, due)
        store.course = tuple((one.name, one.chapter, one.points) for one in ASKED)
        for position, (key_, student, number, verdicts) in enumerate(rows):
            names = [verdict.name for verdict in verdicts]
            one = StoredSubmission(key_, student, "", names, number=number, platform="canvas")
            store.note(position, one)
            for verdict in verdicts:
                store.save(key_, "print", verdict)
    return folder


@pytest.fixture
def results(tmp_path):
    """A small class: its folder of results."""
    return fill(
        tmp_path / "results",
        (ADA, "Ada Lovelace", "101", (passed(), failed("both wait", ASKED[1], 0.5))),
        (BOB, "Bob", "102", (failed("no", score=0.4),)),
        (CYD, "Ada Byron", "103", ()),
    )


def row_of(folder, student):
    with Store(folder, readonly=True) as store:
        return next(row for row in class_results(store).rows if row.student == student)


def gradebook_of(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


# Decisions. -----------------------------------------------------------------------


def test_points_by_hand_are_on_every_page_and_in_every_export(results, tmp_path):
    why = "The sheet had a typo <b>"
    marked(results, "bob", "broadcast", "--points", "0.75", "--why", why, "--by", "Prof. N.")
    row = gradebook_of(results / "gradebook.csv")["Bob"]
    assert (row["broadcast"], row["score"]) == ("0.75", "0.75")
    assert "Prof. N." in row["notes"]
    assert why in row["notes"]
    assert "judged: 0.4" in row["notes"]
    for page in (results / "class.html", results / "feedback" / f"{BOB}.html"):
        text = page.read_text()
        assert "The sheet had a typo &lt;b&gt; (judged: 0.4)" in text
    stored = json.loads((results / "results" / f"{BOB}.json").read_text())
    assert (stored["score"], stored["decided_score"]) == (0.4, 0.75)
    scores = {"canvas": ',"0.75"', "nbgrader": '"0.75","0","0.75"'}
    for name, score in scores.items():
        remarks = export(results, name, tmp_path / name)
        assert score in (tmp_path / name).read_text()
        assert any("0.75 of 1 by hand" in line for line in remarks)
    export(results, "gradescope", tmp_path / "gradescope")
    found = json.loads((tmp_path / "gradescope" / BOB / "results.json").read_text())
    assert found["tests"][0]["score"] == 0.75
    assert why in found["tests"][0]["output"]


def test_an_extension_before_the_deadline_of_the_class_is_refused(results):
    with pytest.raises(RequestError, match="2025-11-22 23:59 is before the deadline of the class"):
        mark(results, MarkRequest("bob", extend="2025-11-22", why="ill", by="me"))
    with Store(results, readonly=True) as store:
        assert store.decisions.all() == []


def test_a_decision_outlives_the_verdict_and_says_that_it_has_changed(results):
    marked(results, BOB, "broadcast", "--points", "0.75", "--why", "w", "--by", "n")
    with Store(results) as store:
        store.save(BOB, "another print", failed("no", score=0.8))
        write(class_results(store), results)
    row = gradebook_of(results / "gradebook.csv")["Bob"]
    assert row["score"] == "0.75"
    said = "decided by hand when the judged score was 0.4; it is 0.8 now"
    assert said in row["notes"]
    assert said in (results / "feedback" / f"{BOB}.html").read_text()
    with Store(results) as store:
        store.keep_only({ADA})
        assert [one.student for one in store.decisions.all()] == [BOB]


def test_the_newest_decision_holds_and_each_can_be_undone(results):
    for points in ("0.5", "0.9"):
        marked(results, "102", "broadcast", "--points", points, "--why", "w", "--by", "n")
    marked(results, "102", "broadcast", "--excuse", "--why", "ill", "--by", "n")
    row = row_of(results, "Bob")
    assert row.score_of("broadcast") is None
    assert row.earned == 0
    marked(results, "--undo", "3", "--by", "m")
    assert row_of(results, "Bob").score == 0.9
    listed = marked(results)
    assert "replaced by a later decision" in " ".join(listed.split())
    assert "undone by m" in " ".join(listed.split())
    again = command("mark", results, "--undo", "3", "--by", "m")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "was undone by m" in again.stderr


def test_who_is_excused_has_no_grade_and_loses_no_points(results, tmp_path):
    marked(results, "Ada Byron", "--excuse", "--why", "transfer", "--by", "n")
    marked(results, "lovelace", ASKED[2].name, "--excuse", "--why", "no GPU", "--by", "n")
    book = gradebook_of(results / "gradebook.csv")
    assert (book["Ada Byron"]["score"], book["Ada Byron"]["status"]) == ("", "excused")
    assert float(book["Ada Lovelace"]["max_score"]) == ASKED[0].points + ASKED[1].points
    assert book["Ada Lovelace"][ASKED[2].name] == "excused"
    export(results, "canvas", tmp_path / "canvas")
    line = next(x for x in (tmp_path / "canvas").read_text().splitlines() if "Byron" in x)
    assert line.endswith('"EX"')


def test_an_extension_moves_the_deadline_also_of_who_has_handed_in_nothing(results):
    marked(results, "bob", "--extend", "2026-12-01", "--why", "ill", "--by", "n")
    marked(results, "Dee", "--extend", "2026-12-03 18:00", "--why", "v", "--by", "n", "--ahead")
    assert row_of(results, "Bob").due == datetime(2026, 12, 1, 23, 59, 59, tzinfo=timezone.utc)
    assert row_of(results, "Ada Lovelace").due == DUE
    with Store(results, readonly=True) as store:
        assert [one.student for one in class_results(store).not_here] == ["Dee"]
        assignment = store.assignment
    assert lateness_of_arrivals(assignment, results) is not None
    fill(results, (ADA, "Ada Lovelace", "101", ()), (key(b"d", "Dee"), "Dee", "104", (passed(),)))
    assert row_of(results, "Dee").due.hour == 18


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("ada", "broadcast", "--points", "1", "--why", "w"), "fits 2 students: Ada Lovelace ("),
        (("bobb", "broadcast", "--points", "1", "--why", "w"), "did you mean Bob ("),
        (("bob", "brodcast", "--points", "1", "--why", "w"), "did you mean broadcast?"),
        (("bob", "broadcast", "--points", "7", "--why", "w"), "it earns 0 to 1"),
        (("bob", "broadcast", "--points", "nan", "--why", "w"), "--points is a number"),
        (("bob", "broadcast", "--points", "1"), "a decision needs a reason"),
        (("bob", "--points", "1", "--why", "w"), "name it after the student"),
        (("bob", "broadcast", "--extend", "2026-12-01", "--why", "w"), "leave broadcast out"),
        (("bob", "--extend", "soon", "--why", "w"), "'soon' is no date"),
        (("bob", "--excuse", "--undo", "1", "--why", "w"), "one decision at a time"),
        (("--excuse", "--why", "w"), "whom is it about?"),
        (("--undo", "4"), "there is no decision 4; there are none"),
    ],
)
def test_a_wrong_request_changes_nothing(results, arguments, said, capsys):
    from grader.cli.main import main

    assert main(["mark", str(results), *arguments, "--by", "n"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    with Store(results, readonly=True) as store:
        assert store.decisions.all() == []


_DECIDING = """
import sys
sys.argv[0] = "-m"
from pathlib import Path
from grader.classroom.marking import MarkRequest, mark
for number in range(1000):
    points = number / 1000
    request = MarkRequest("bob", "broadcast", points, why="w" * 500, by="n")
    mark(Path(sys.argv[1]), request)
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_a_kill_loses_no_decision_that_was_said(results):
    for wanted in (1, 3, 4):
        process = subprocess.Popen(
            [sys.executable, "-c", _DECIDING, str(results)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            said = [process.stdout.readline() for _ in range(wanted)]
            process.send_signal(signal.SIGKILL)
            said += process.stdout.read().splitlines()
        numbers = {int(line.split()[1].rstrip(":")) for line in said if line.startswith("decision")}
        with Store(results) as store:  # another process can go on at once
            kept = store.decisions.all()
            assert numbers <= {one.number for one in kept}
            assert row_of(results, "Bob").score == kept[-1].points
            assert "Bob" in gradebook_of(results / "gradebook.csv")  # the old file or the new one


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap makes the disk")
def test_a_full_disk_loses_no_decision(results, tmp_path):
    script = _DECIDING.replace("* 500", "* 20_000")
    room = ("--size", "900000", "--tmpfs", "/small")
    shell = f"cp -r {results} /small/r && {sys.executable} -c '{script}' /small/r; status=$?;"
    shell += f" mkdir -p {tmp_path}/kept; cp /small/r/grades.sqlite {tmp_path}/kept; exit $status"
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *room, "--", "bash", "-c", shell],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert "full" in done.stderr or "No space left" in done.stderr, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("decision")]
    with Store(tmp_path / "kept") as store:
        assert len(said) <= len(store.decisions.all())
        assert len(said) > 2


# What students see of the seed. ---------------------------------------------------


def test_a_student_gets_the_seed_of_what_was_handed_in_unless_points_are_all_that_is_shown(
    tmp_path,
):
    fill(tmp_path, (BOB, "Bob", None, (passed(),)))
    with Store(tmp_path, readonly=True) as store:
        found = class_results(store)
    assert f"broadcast --seed {passed().seed}" in feedback(found, found.rows[0])
    terse = replace(found, assignment=replace(found.assignment, shows="points"))
    assert "--seed" not in feedback(terse, found.rows[0])


# Over a term. ---------------------------------------------------------------------


def test_a_term_has_a_row_for_each_student_and_names_whoever_is_not_clear(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    loop = failed("loop")
    fill(
        one,
        ("a-1", "Ada Lovelace", "101", (passed(),)),
        ("b-1", "Bob", "102", (loop,)),
        ("c-1", "Cyd", "103", (loop,)),
    )
    fill(
        two,
        ("a-2", "Lovelace, Ada", "101", (passed(),)),
        ("b-2", "Bob", "999", (loop,)),
        ("d-2", "Dee", "104", (passed(),)),
        title="Week 3",
    )
    done = command("term", one, two, "--to", tmp_path / "term")
    assert done.returncode == 0, done.stderr
    book = gradebook_of(tmp_path / "term" / "term.csv")
    assert (book["Lovelace, Ada"]["Week 2"], book["Lovelace, Ada"]["Week 3"]) == ("1", "1")
    assert book["Lovelace, Ada"]["total"] == "2"
    assert "Week 3: Bob (b-2) may be Week 2: Bob (b-1): not merged" in done.stderr
    assert "Dee (d-2) is in no assignment before" in done.stderr
    assert "nothing of Cyd in Week 3" in done.stderr
    with open(tmp_path / "term" / "term.csv", encoding="utf-8-sig") as file:
        assert len(file.readlines()) == 1 + 5  # two of them are called Bob
    page = (tmp_path / "term" / "term.html").read_text()
    assert "<b>3</b>" in page
    assert "Try this: loop" in page
    twice = command("term", one, one, "--to", tmp_path / "term")
    assert (twice.returncode, "named twice" in twice.stderr) == (2, True)


# A verdict, repeated. -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_verdict_is_repeated_in_the_sandbox_and_by_the_student(tmp_path):
    for student in ("bob", "bea"):
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / "hw.py").write_text(HEAD + RIGHT.replace("+ 1", "+ 2"))
    (tmp_path / "in" / "cyd").mkdir()
    plots = [{"data": {"image/png": "iVBORw0KGgo" * (4 << 20)}}]
    cell = {"cell_type": "code", "source": HEAD + WRONG, "metadata": {}, "outputs": plots}
    large = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "in" / "cyd" / "hw.ipynb.json").write_text(json.dumps(large))
    out = tmp_path / "out"
    request = [tmp_path / "in", "--out", out, "--exercises", "neighbours", *FOLDERS]
    assert grade(*request).returncode == 0
    with Store(out, readonly=True) as store:
        verdicts = {e.student: store.verdicts(e.key)["neighbours"] for e in store.entries()}
    # equal answers get equal inputs, and a notebook of 46 MB is judged
    assert verdicts["bob"] == verdicts["bea"] or verdicts["bob"].score == verdicts["bea"].score
    assert verdicts["cyd"].status is Status.FAILED
    assert verdicts["cyd"].cases
    done = command("reproduce", out, "bob", "neighbours")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The verdict is the same" in done.stdout
    seed = verdicts["bob"].seed
    assert f"python -m grader check hw.py neighbours --seed {seed}\n" in done.stdout
    own = command(
        "check", tmp_path / "in" / "bob" / "hw.py", "neighbours", "--seed", seed, "--json"
    )
    (seen,) = json.loads(own.stdout)["exercises"]
    assert seen["score"] == verdicts["bob"].score
    assert seen["message"] == verdicts["bob"].message
    (tmp_path / "in" / "bob" / "hw.py").write_text(HEAD + RIGHT)
    changed = command("reproduce", out, "bob", "neighbours")
    assert changed.returncode == 2
    assert "hw.py of bob has changed since it was judged (SHA-256" in changed.stderr
    shutil.rmtree(tmp_path / "in" / "bob")
    assert "holds nothing of bob any more" in command("reproduce", out, "bob", "neighbours").stderr
