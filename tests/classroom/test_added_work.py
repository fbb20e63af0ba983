"""Which work counts where a student hands in several times, and when it came."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from grader.classroom.arrivals import collect
from grader.classroom.assignment import Assignment, LatePolicy
from grader.classroom.command import Options, fallen, grade_class
from grader.classroom.messages import ExerciseJudged, SubmissionJudged, SubmissionPlanned
from grader.classroom.results import ClassResults, SubmissionRow, class_results
from grader.classroom.store import Store, fingerprint
from headcount.core.verdict import Diagnosis
from tests.classes import ASKED, failed, passed
from tests.classroom.test_arrivals import fill

CATALOGUE = {
    one.name: SimpleNamespace(name=one.name, chapter=one.chapter, points=one.points, inputs=passed)
    for one in ASKED
}


class ReadyVerdicts:
    """An engine that gives the same verdicts to every submission, from the files it is told."""

    def __init__(self, *verdicts, files=()):
        self.verdicts, self.files = verdicts, files

    def run(self, requests):
        for one in requests:
            names = tuple(verdict.name for verdict in self.verdicts)
            yield SubmissionPlanned(one.key, names, (), files=self.files)
            for verdict in self.verdicts:
                exercise = CATALOGUE[verdict.name]
                mark = fingerprint(exercise, one.digest, one.seed, one.limits.key())
                yield ExerciseJudged(one.key, mark, verdict)
            yield SubmissionJudged(one.key)


def graded(tmp_path, files, engine, layout="folders", **options):
    """Return the row of the one student once files were graded, and what has fallen."""
    source = fill(tmp_path / f"given {len(list(tmp_path.iterdir()))}", files)
    with collect(source, layout=layout) as arrivals, Store(tmp_path / "results") as store:
        before = class_results(store)
        chosen = Options(**options)
        grade_class(source, arrivals.submissions, store, engine, CATALOGUE, chosen, lambda *_: None)
        results = class_results(store)
    (row,) = results.rows
    return row, list(fallen(before, results))


BROADCAST, EXCHANGE, BARRIER = ASKED


def test_work_that_is_added_keeps_what_its_files_do_not_touch(tmp_path):
    first = ReadyVerdicts(failed("is missing", BROADCAST), passed(EXCHANGE))
    row, less = graded(tmp_path, {"kim/all.py": b"1"}, first)
    assert (row.score, less) == (2.0, [])
    added = ReadyVerdicts(passed(BROADCAST))
    row, less = graded(tmp_path, {"kim/02.py": b"2"}, added, add=True)
    assert (row.score, less) == (3.0, [])
    assert "kept from what was handed in before: exchange" in row.notes
    # and once more, with the same files or the first ones
    row, _ = graded(tmp_path, {"kim/02.py": b"2"}, added, add=True)
    assert row.score == 3.0
    row, less = graded(tmp_path, {"kim/all.py": b"1"}, first, add=True, force=True)
    assert (row.score, less) == (2.0, ["kim: 3 → 2 points"])


def test_an_answer_stays_where_what_is_added_leaves_it_empty(tmp_path):
    graded(tmp_path, {"kim/all.py": b"1"}, ReadyVerdicts(passed(BROADCAST), passed(EXCHANGE)))
    stub = failed("is a stub", BROADCAST, diagnosis=Diagnosis.NOT_ATTEMPTED)
    engine = ReadyVerdicts(stub, failed("wrong", EXCHANGE))
    row, less = graded(tmp_path, {"kim/all.py": b"2"}, engine, add=True)
    assert (row.score_of("broadcast"), row.score_of("exchange")) == (1.0, 0.0)
    assert less == ["kim: 3 → 1 points"]


def test_verdicts_that_are_gone_are_named(tmp_path):
    graded(tmp_path, {"kim/all.py": b"1"}, ReadyVerdicts(passed(BROADCAST), passed(EXCHANGE)))
    row, less = graded(tmp_path, {"kim/02.py": b"2"}, ReadyVerdicts(passed(BROADCAST)))
    assert less == ["kim: 3 → 1 points; no verdict any more on exchange"]
    assert "judged before, and not in these files: exchange" in row.notes


def test_the_time_is_that_of_the_files_that_count(tmp_path):
    """nbgrader keeps all assignments of a student together."""
    files = {
        "submitted/al/hw1/a.py": b"1",
        "submitted/al/hw1/timestamp.txt": b"2026-11-20 18:00:00 UTC",
        "submitted/al/hw2/b.py": b"2",
        "submitted/al/hw2/timestamp.txt": b"2026-11-25 12:00:00 America/New_York",
    }
    for file, hour in (("hw1/a.py", "2026-11-20T18"), ("hw2/b.py", "2026-11-25T17")):
        engine = ReadyVerdicts(passed(BROADCAST), files=(file,))
        row, _ = graded(tmp_path, files, engine, layout=None, force=True)
        assert row.handed_in.isoformat() == f"{hour}:00:00+00:00"
        # and it stays so where nothing has to be judged
        row, _ = graded(tmp_path, files, engine, layout=None)
        assert row.handed_in.isoformat() == f"{hour}:00:00+00:00"
    packed = shutil.make_archive(tmp_path / "course", "zip", fill(tmp_path / "course", files))
    with collect(Path(packed)) as arrivals:
        assert [one.handed_in.hour for one in arrivals.submissions] == [17]


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("zone", [timezone.utc, BERLIN])
def test_lateness_does_not_depend_on_the_clock_that_it_is_told_by(zone):
    """On the 25th of October 2026 the hour from two to three comes twice in Berlin."""
    policy = LatePolicy(per_day=10)
    due = datetime(2026, 10, 24, 23, 59, tzinfo=BERLIN)
    came = datetime(2026, 10, 25, 22, 58, tzinfo=timezone.utc).astimezone(zone)
    assert policy.lateness(due, came).seconds == 86_400 + 59 * 60
    assert policy.lateness(due, came).taken == 0.2
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=n) for n in (0, 1))
    assert policy.lateness(first, second).seconds == 3_600
    assert policy.lateness(second, first) is None


def test_an_extension_never_ends_before_the_deadline_of_all():
    due = datetime(2026, 11, 22, 12, tzinfo=BERLIN)
    found = Assignment(
        due=due,
        extensions={
            "ada": due - timedelta(days=2),
            "bob": due + timedelta(days=1),
            "bob@example.edu": due + timedelta(days=2),
        },
    )
    assert found.due_for("ada") == found.due_for("eve") == due
    assert found.due_for("bob", "bob@example.edu") == due + timedelta(days=2)
    assert Assignment().due_for("ada") is None


def test_scores_that_fall_are_named():
    def of(verdict):
        return ClassResults("t", "now", (SubmissionRow("a", "A", exercises=(verdict,)),), ASKED)

    assert list(fallen(of(passed()), of(failed("no")))) == ["A: 1 → 0 points"]
    assert list(fallen(of(failed("no")), of(passed()))) == []
