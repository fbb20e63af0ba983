"""What comes of a diagnosis follows from the fields of its entry, and from nothing else.

The tests give every diagnosis every value of a field, as an entry could that is added tomorrow.
"""

from __future__ import annotations

from itertools import product

import pytest

from grader.api import catalogue
from grader.classroom.results import SubmissionRow
from grader.classroom.term import Term, TermStudent, frequent
from grader.course.progress import note
from grader.exercise.verdict import CaseVerdict, ExerciseVerdict, Status
from grader.judge.scoring import share_limit
from grader.report.looks import Look
from grader.report.summary import look_of
from headcount.core.verdict import Diagnosis, Failure, Gravity
from headcount.launch.root_cause import RootCause
from headcount.script.report import ExitStatus, ScriptRun
from headcount.script.tally import CallTally
from headcount.trace.message_matcher import MessageMatcher
from scripts.test_scripts import execute
from tests.grader.test_judge import KIND, declare, judge


@pytest.fixture
def each(monkeypatch):
    """Return a function that yields every diagnosis with every choice of values for its fields."""

    def changed(**fields):
        for diagnosis in Diagnosis:
            for values in product(*fields.values()):
                with monkeypatch.context() as patch:
                    for name, value in zip(fields, values, strict=True):
                        patch.setattr(diagnosis, name, value)
                    yield diagnosis, *values

    return changed


YES_OR_NO = (False, True)


def failed(diagnosis, name="broadcast"):
    chapter = catalogue()[name].chapter
    return ExerciseVerdict(name, chapter, Status.FAILED, 0.0, 1.0, diagnosis, "a message", "a hint")


def test_the_exit_status_of_run(each):
    seen = set()
    for diagnosis, gravity, communication, untrusted in each(
        gravity=Gravity, communication_fault=YES_OR_NO, untrusted=YES_OR_NO
    ):
        failure = Failure(diagnosis, "a message")
        status = ScriptRun([], 2, failure, None, [], CallTally(2), 1.0).status()
        if communication:
            assert status is ExitStatus.COMMUNICATION_FAULT
        elif gravity is Gravity.HANGS:
            assert status is ExitStatus.TIMED_OUT
        else:
            assert status is (
                ExitStatus.HEADCOUNT_FAILED if untrusted else ExitStatus.SCRIPT_FAILED
            )
        seen.add(status)
    assert seen == {*ExitStatus} - {ExitStatus.OK}


def test_a_fault_between_ranks_is_reported_with_the_places_of_all(tmp_path, monkeypatch):
    script = tmp_path / "script" / "fails.py"
    script.parent.mkdir()
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "def receive():\n"
        "    dist.recv(torch.empty(1), 0)\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 0:\n"
        "    raise ValueError\n"
        "receive()\n"
    )
    place = "rank 1: fails.py:3 is called from fails.py:7"
    alone, _ = execute(script, tmp_path, 2)
    assert alone.failure.diagnosis is Diagnosis.EXCEPTION
    assert place not in alone.failure.detail
    monkeypatch.setattr(Diagnosis.EXCEPTION, "communication_fault", True)
    together, _ = execute(script, tmp_path, 2)
    assert place in together.failure.detail
    monkeypatch.setattr(Diagnosis.EXCEPTION, "reported_by_rank", True)
    reported, _ = execute(script, tmp_path, 2)
    assert place not in reported.failure.detail


def test_whether_ranks_are_called_again(each):
    for diagnosis, recoverable in each(recoverable=YES_OR_NO):
        causes = RootCause(MessageMatcher(1))
        causes.refused(0, diagnosis, "fails")
        assert causes.is_recoverable() == recoverable


def test_what_earns_no_points(each):
    for diagnosis, gravity, nothing in each(gravity=Gravity, nothing_done=YES_OR_NO):
        case = CaseVerdict("a", 2, Status.FAILED, diagnosis)
        earns = share_limit([case]) > 0
        assert earns == (not nothing and gravity is not Gravity.WORTHLESS)


@pytest.mark.parametrize(
    "fields, cases",
    [
        ({}, 3),
        ({"gravity": Gravity.WORTHLESS}, 1),
        ({"nothing_done": True}, 1),
        ({"gravity": Gravity.HANGS}, 1),
        ({"gravity": Gravity.HANGS, "communication_fault": True}, 3),
    ],
)
def test_after_which_diagnoses_no_further_case_is_run(fields, cases, monkeypatch):
    for name, value in fields.items():
        monkeypatch.setattr(Diagnosis.WRONG_TYPE, name, value)
    exercise = declare(
        inputs=lambda draw: [draw.case(name, x=draw.per_rank(KIND)) for name in "abc"],
        expected=lambda c: ["a word"] * c.n,
        world_sizes=(1,),
    )
    verdict = judge(lambda x: None, exercise)
    assert verdict.diagnosis is Diagnosis.WRONG_TYPE
    assert sum(case.judged for case in verdict.cases) == cases


def test_what_is_no_attempt_looks_untouched_and_is_no_mistake_of_a_term(each):
    for diagnosis, gravity, nothing in each(gravity=Gravity, nothing_done=YES_OR_NO):
        verdict = failed(diagnosis)
        assert (look_of(verdict) is Look.HUNG) == (gravity is Gravity.HANGS)
        if gravity is not Gravity.HANGS:
            assert (look_of(verdict) is Look.UNTOUCHED) == nothing
        row = SubmissionRow("a", "A. Student", exercises=(verdict,))
        term = Term((None,), ("first",), (TermStudent({0: row}),), ())
        assert [one.diagnosis for one in frequent(term)] == [diagnosis] * (not nothing)


def test_what_is_no_attempt_is_not_kept_in_the_progress(each, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADER_PROGRESS", str(tmp_path / "progress.json"))
    for diagnosis, nothing in each(nothing_done=YES_OR_NO):
        kept = note([failed(diagnosis)], catalogue(), None)
        assert (kept is None) == nothing, diagnosis


def test_too_much_of_something_has_an_opposite():
    few = {one for one in Diagnosis if one.startswith("too_few_")}
    pairs = {one: one.opposite for one in Diagnosis if one.opposite is not one}
    assert set(pairs.values()) == few
    assert all(one == other.replace("few", "many") for one, other in pairs.items())
