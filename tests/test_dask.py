"""A class judged by a Dask cluster: the same verdicts, whatever becomes of its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[class]'")

from distributed import Client, Event, LocalCluster, Lock, Variable

from grader.classroom.engines import DaskEngine, LocalEngine, connect, slurm
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
    Workers,
)
from grader.core.errors import RequestError, WorldError
from grader.launch.sandbox import missing
from tests.test_grade import HEAD, SUBMISSIONS

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(bool(missing()), reason=missing())


def orders(names):
    for name in names:
        files = (("answers.py", (HEAD + SUBMISSIONS[name]).encode()),)
        yield GradingRequest(name, files, name, 2**100, Limits())


def told(engine, names):
    """What an engine tells of submissions, without times."""
    found = list(engine.run(orders(names)))
    ends = [one.key for one in found if isinstance(one, SubmissionJudged)]
    assert sorted(ends) == sorted(names)
    return {
        (one.key, one.verdict.name): (one.verdict.status, one.verdict.message, one.fingerprint)
        for one in found
        if isinstance(one, ExerciseJudged)
    }


@pytest.fixture
def cluster():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
    ) as made:
        yield made


@needs_sandbox
def test_a_cluster_comes_to_the_same_verdicts(cluster):
    names = list(SUBMISSIONS)
    here, there = LocalEngine(1), connect(cluster.scheduler_address, None)
    try:
        assert told(there, names) == told(here, names)
    finally:
        here.close()
        there.close()


def _judge_together(order):
    """In a worker: ends when four submissions are being judged at the same time."""
    everybody = Event("everybody is here")
    with Lock("counting"):
        here = Variable("here")
        here.set(here.get(timeout=60) + 1)
        if here.get(timeout=60) == 4:
            everybody.set()
    if not everybody.wait(timeout=60):
        return [SubmissionLost(order.key, "the others have not come")]
    return [SubmissionJudged(order.key)]


def test_workers_that_come_later_get_work_while_the_first_is_busy(monkeypatch):
    """As SLURM starts them: none when the grading begins, then one, then three more."""
    monkeypatch.setattr("grader.classroom.engines.carry_out", _judge_together)
    with (
        LocalCluster(
            n_workers=0, threads_per_worker=1, dashboard_address=":0", processes=False
        ) as cluster,
        Client(cluster) as client,
    ):
        Variable("here", client=client).set(0)
        found = []
        for told in DaskEngine(client).run(
            GradingRequest(f"{number}", (), "", 0, Limits()) for number in range(4)
        ):
            found.append(told)
            if isinstance(told, Workers) and told.count < 4:
                cluster.scale(1 if told.count == 0 else 4)
    counts = [one.count for one in found if isinstance(one, Workers)]
    assert counts[:2] == [0, 1]
    assert counts[-1] == 4
    ends = [one for one in found if not isinstance(one, Workers)]
    assert sorted(ends, key=str) == [SubmissionJudged(f"{number}") for number in range(4)]


@needs_sandbox
def test_a_worker_that_is_killed_costs_no_submission(cluster):
    engine = DaskEngine(Client(cluster))
    killed = []

    def killing():
        for number, order in enumerate(orders(["right"] * 6)):
            if number == 4:  # the first four are given out
                (pid, *_) = engine._client.run(os.getpid).values()
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            yield GradingRequest(f"{number}", order.files, order.digest, order.seed, order.limits)

    try:
        found = list(engine.run(killing()))
    finally:
        engine.close()
    assert killed
    assert not [one for one in found if isinstance(one, SubmissionLost)]
    passed = {one.key for one in found if isinstance(one, ExerciseJudged) and one.verdict.passed}
    assert passed == {str(number) for number in range(6)}


def _judges():
    """In a worker: the processes that judge for it."""
    found = [child for child in psutil.Process().children() if "grading" in str(child.cmdline())]
    return [child.pid for child in found]


def test_a_worker_keeps_its_judge_until_the_engine_is_closed():
    """A new one would import torch for every submission."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=True
    ) as cluster, Client(cluster) as mine:  # fmt: skip
        engine = DaskEngine(Client(cluster))
        seen = []
        for number in range(2):
            list(engine.run([GradingRequest(f"{number}", (), "", 0, Limits(sandbox=False))]))
            seen += mine.run(_judges).values()
        engine.close()
        (last,) = mine.run(_judges).values()
    assert len(seen[0]) == 1
    assert seen == [seen[0]] * 2
    assert last == []


def test_a_scheduler_that_ends_is_said_in_a_line(tmp_path):
    """And not in a traceback: what was judged is stored, and the next grading goes on.

    The timeout is that of connecting, once the file is there, and of connecting again.
    """
    file = tmp_path / "scheduler.json"
    arguments = ["--port", "0", "--dashboard-address", ":0", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *arguments],
        stderr=subprocess.DEVNULL,
    )
    try:
        engine = DaskEngine(Client(scheduler_file=str(file), timeout=10))
        told = engine.run(orders(["right"]))
        assert next(told) == Workers(0)
    finally:
        scheduler.kill()
        scheduler.wait()
    try:
        with pytest.raises(WorldError, match="does not answer any more; every verdict so far"):
            next(told)
    finally:
        engine.close()


def test_a_scheduler_that_is_not_there(monkeypatch):
    # nobody listens at the discard port, and Dask asks again until the time is over
    monkeypatch.setattr("grader.classroom.engines._ANSWER", 1)
    with pytest.raises(RequestError, match="no Dask scheduler answers"):
        connect("tcp://127.0.0.1:9", None)


@pytest.fixture
def slurm_commands(tmp_path, monkeypatch):
    """There is no SLURM here: commands of its names that keep what is submitted."""
    for name, line in (("sbatch", "cp $1 {}/job; echo Submitted batch job 7"), ("scancel", "")):
        command = tmp_path / name
        command.write_text("#!/bin/sh\n" + line.format(tmp_path) + "\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_the_job_script_for_slurm(slurm_commands):
    engine = slurm(
        1, cores=2, memory="8GB", walltime="01:00:00", queue="teaching", account="course"
    )
    try:
        until = time.monotonic() + 30
        while not (slurm_commands / "job").exists() and time.monotonic() < until:
            time.sleep(0.01)
        script = (slurm_commands / "job").read_text()
    finally:
        engine.close()
    for line in (
        "#SBATCH -p teaching",
        "#SBATCH -A course",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --mem=8G",
        "#SBATCH -t 01:00:00",
        "distributed.cli.dask_worker",
    ):
        assert line in script


def test_a_machine_without_slurm_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RequestError, match="sbatch is not installed here"):
        slurm(1, cores=2, memory="8GB")


def test_a_cluster_that_is_not_configured_is_said(slurm_commands):
    with pytest.raises(RequestError, match=r"cores are not set; see docs/grading\.md"):
        slurm(1)
