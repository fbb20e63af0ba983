"""Workers of this machine: started side by side, and tidied up after, however it ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.classroom import engines
from grader.classroom.command import Signals, Stop, temporary_folder
from grader.classroom.engines import LocalEngine
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
)
from grader.sandbox.sandboxes import missing
from headcount.core.errors import WorldError
from headcount.core.verdict import Diagnosis

ROOT = Path(__file__).resolve().parents[2]

#: What students hand in: something to judge at once, and something that takes its time.
ANSWERS = """
def neighbours():
    return 0, 0

def who_am_i():
    while True:
        pass
"""


def until(condition, what, seconds=100):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)


#: A worker that listens only when there is another worker, and judges nothing.
LISTENS_LATE = """
import os, sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from multiprocessing.connection import Connection
from pathlib import Path
from grader.classroom import grading
from grader.classroom.messages import SubmissionJudged
from tests.classroom.test_engines import until
started = Path(os.environ["TEST_STARTED"])
(started / str(os.getpid())).touch()
until(lambda: len(list(started.iterdir())) == 2, "two workers")
grading.serve_request = lambda one, report: report(SubmissionJudged(one.key))
grading.serve(Connection(int(sys.argv[1])))
"""


def test_workers_start_side_by_side_however_large_their_orders(tmp_path, monkeypatch):
    """Neither worker listens before the other one has started; their orders fill any pipe."""
    monkeypatch.setenv("TEST_STARTED", str(tmp_path))
    monkeypatch.setattr(engines, "PROGRAM", [sys.executable, "-c", LISTENS_LATE])
    files = (("answers.py", b"#" * (2 << 20)),)
    engine = LocalEngine(2)
    try:
        told = list(engine.run(GradingRequest(key, files, key, 1, Limits()) for key in ("a", "b")))
    finally:
        engine.close()
    assert sorted(told, key=str) == [SubmissionJudged("a"), SubmissionJudged("b")]


#: A worker that stalls in what one submission holds, where no signal reaches Python.
STALLS = """
import re, sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from multiprocessing.connection import Connection
from grader.classroom import grading
from grader.classroom.messages import ExerciseJudged, SubmissionPlanned
from grader.exercise.verdict import ExerciseVerdict, Status
judge = grading.serve_request

def serve_request(request, report):
    stalls = request.overdue is None and request.key in ("planned", "unread")
    if stalls and request.key == "planned":
        report(SubmissionPlanned(request.key, ("who_am_i", "neighbours"), ()))
        done = ExerciseVerdict("who_am_i", "00_ranks_and_groups", Status.PASSED, 1.0, 1.0)
        report(ExerciseJudged(request.key, "", done))
    if stalls:
        re.match("(a|a)*b", "a" * 50)
    judge(request, report)

grading.serve_request = serve_request
grading.serve(Connection(int(sys.argv[1])))
"""


def test_a_submission_over_its_time_is_ended_whatever_the_judge_computes(monkeypatch):
    """Its verdicts are timeouts, and the others are judged."""
    monkeypatch.setattr(engines, "PROGRAM", [sys.executable, "-c", STALLS])
    monkeypatch.setattr(engines, "GRACE", 0.0)
    chapter = (("00_ranks_and_groups.py", b""),)
    orders = [
        GradingRequest(key, files, key, 1, Limits(sandbox=False, submission=seconds))
        for key, files, seconds in (
            ("planned", chapter, 0.5),
            ("unread", chapter, 0.5),
            ("empty", (("notes.py", b""),), 600.0),
        )
    ]
    engine = LocalEngine(1)
    try:
        told = list(engine.run(orders))
    finally:
        engine.close()
    verdicts = {
        (event.key, event.verdict.name): event.verdict
        for event in told
        if isinstance(event, ExerciseJudged)
    }
    assert {where: verdict.diagnosis for where, verdict in verdicts.items()} == {
        ("planned", "who_am_i"): None,
        ("planned", "neighbours"): Diagnosis.TIMEOUT,
        ("unread", "who_am_i"): Diagnosis.TIMEOUT,
        ("unread", "neighbours"): Diagnosis.TIMEOUT,
    }
    assert "over 0.5 s in all" in verdicts["unread", "neighbours"].message
    ended = sorted(event.key for event in told if isinstance(event, SubmissionJudged))
    assert ended == ["empty", "planned", "unread"]


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("import os; os.kill(os.getpid(), 40)", "by signal 40"),
        ("import os; os.kill(os.getpid(), 9)", "by SIGKILL"),
        ("raise SystemExit(3)", "with status 3"),
    ],
)
def test_a_worker_that_ends_costs_its_submission_and_no_other(monkeypatch, program, how):
    """Also by a real-time signal, which has no name."""
    monkeypatch.setattr(engines, "PROGRAM", [sys.executable, "-c", program])
    engine = LocalEngine(1)
    try:
        told = list(engine.run(GradingRequest(key, (), key, 1, Limits()) for key in ("a", "b")))
    finally:
        engine.close()
    lost = f"the process that judged it ended twice: {how}"
    assert told == [SubmissionLost("a", lost), SubmissionLost("b", lost)]


FORKED = """
import sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
import psutil
{before}
from grader.classroom.engines import LocalEngine
from grader.classroom.messages import GradingRequest, Limits, SubmissionJudged
engine = LocalEngine(3)
mine = psutil.Process()
print(sum(child.cmdline() == mine.cmdline() for child in mine.children()))
requests = [GradingRequest(key, (("a.py", b""),), key, 1, Limits(sandbox=False)) for key in "abcde"]
ended = [event.key for event in engine.run(requests) if isinstance(event, SubmissionJudged)]
print(*sorted(ended))
engine.close()
print(mine.children())
"""


@pytest.mark.parametrize(
    ("before", "forked"),
    [
        ("from headcount.launch.launchers import use_one_thread as before; before()", 3),
        ("import threading; threading.Thread(target=input, daemon=True).start()", 0),
    ],
    ids=["one thread", "two threads"],
)
def test_workers_are_forked_from_a_process_with_one_thread(before, forked):
    process = subprocess.Popen(
        [sys.executable, "-c", FORKED.format(before=before)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = process.stdout.read()
    process.communicate("go\n")
    assert said == f"{forked}\na b c d e\n[]\n"


def test_a_signal_counts_more_than_what_it_breaks():
    """Ctrl-C ends processes that are being started as well, and their end is an error."""

    def graded():
        with Signals() as signals, temporary_folder(signals):
            signals.hold()
            os.kill(os.getpid(), signal.SIGINT)
            raise WorldError("no sandbox can be started")

    with pytest.raises(Stop) as stop:
        graded()
    assert stop.value.number == signal.SIGINT


def _sandbox_is_made(temporary, out):
    """Whether a worker has made the folder that it makes just before its sandbox."""
    folders = [path for path in temporary.rglob("*") if path.is_dir()]
    return any(stat.S_IMODE(path.stat().st_mode) == 0o711 for path in folders)


def _is_judging(temporary, out):
    """Whether a verdict has been found, so that the next one is being looked for."""
    from tests.classroom.test_grade import stored_verdicts

    return (out / "grades.sqlite").exists() and bool(stored_verdicts(out))


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, _sandbox_is_made),
        (signal.SIGINT, _is_judging),
        (signal.SIGTERM, _is_judging),
    ],
)
def test_a_grading_that_is_stopped_leaves_no_temporary_files(tmp_path, number, moment):
    """Ctrl-C goes to all processes of a terminal, and SIGTERM to the one that was started."""
    temporary, out = tmp_path / "tmp", tmp_path / "out"
    temporary.mkdir()
    (tmp_path / "in" / "ada").mkdir(parents=True)
    (tmp_path / "in" / "ada" / "answers.py").write_text(ANSWERS)
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", "grade", str(tmp_path / "in"), "--layout", "folders",
         "--out", str(out)],
        cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until(lambda: moment(temporary, out) or process.poll() is not None, moment.__name__)
        assert process.poll() is None, process.stdout.read()
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        said, _ = process.communicate(timeout=100)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert list(temporary.iterdir()) == []
    assert process.returncode == 128 + number, said
    assert "every verdict so far is stored" in " ".join(said.split())
    assert "Traceback" not in said
