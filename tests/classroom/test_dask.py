"""A class judged by a Dask cluster: the same verdicts, whatever becomes of its workers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time

import psutil
import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[class]'")
pytest.importorskip("cryptography", reason="it is not installed: pip install '.[class]'")

import dask
from distributed import Client, Event, LocalCluster, Lock, Security, Variable

from grader.classroom import engines
from grader.classroom.engines import DaskEngine, LocalEngine, connect, slurm, warning_of
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
    Workers,
)
from grader.cli.main import main
from grader.sandbox.sandboxes import missing
from headcount.core.errors import RequestError, WorldError
from tests.classroom.test_grade import HEAD, SUBMISSIONS

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
                (pid, *_) = engine.client.run(os.getpid).values()
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
    monkeypatch.setattr("grader.classroom.engines.ANSWER", 1)
    with pytest.raises(RequestError, match="no Dask scheduler answers"):
        connect("tcp://127.0.0.1:9", None)


# Who may give a cluster commands. ------------------------------------------------------


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """TLS of somebody who trusts everybody, and has a certificate of their own."""
    made = Security.temporary()
    file = tmp_path_factory.mktemp("stranger") / "certificate.pem"
    file.write_text(made.tls_client_cert + made.tls_client_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(file)
    return context


def heard(place, context=None):
    """What a server says to a request, with TLS or without; an empty string if it hangs up."""
    with contextlib.suppress(ssl.SSLError, ConnectionResetError), contextlib.ExitStack() as open_:
        server = open_.enter_context(socket.create_connection(place, timeout=10))
        if context is not None:
            server = open_.enter_context(context.wrap_socket(server))
        server.sendall(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
        return server.recv(1000).partition(b"\r\n")[0].decode("latin-1")
    return ""


def listening(process):
    """The addresses at which a process and those that it has started wait for connections."""
    return [
        one.laddr
        for each in (process, *process.children(recursive=True))
        for one in each.net_connections(kind="inet")
        if one.status == psutil.CONN_LISTEN
    ]


def test_a_cluster_of_this_machine_takes_nothing_from_others(stranger):
    """At none of its ports: scheduler, workers, what looks after workers, and HTTP servers."""
    before = listening(psutil.Process())
    engine = connect(None, 2)
    try:
        places = [one for one in listening(psutil.Process()) if one not in before]
        words = {heard(one) or heard(one, stranger) for one in places}
        served = engine.client.submit(os.getpid).result()  # by a client that has the certificate
    finally:
        engine.close()
    assert served != os.getpid()
    assert {one.ip for one in places} == {"127.0.0.1"}
    assert len(places) >= 6
    assert words == {"", "HTTP/1.1 404 Not Found"}


@pytest.mark.parametrize("theirs", [None, "another certificate"])
def test_a_client_without_the_certificate_is_refused(theirs):
    engine = connect(None, 1)
    try:
        security = Security.temporary() if theirs else None
        with pytest.raises((TypeError, OSError), match="TLS"):
            Client(engine.address, security=security, timeout=5)
    finally:
        engine.close()


def test_a_scheduler_that_asks_for_a_certificate_gets_one_or_a_word():
    with pytest.raises(RequestError, match="asks for a certificate, and Dask is not configured"):
        connect("tls://127.0.0.1:9", None)


def test_a_cluster_with_certificates_of_its_own_is_joined_by_dasks_configuration(tmp_path):
    theirs = engines.write_credentials(Security.temporary(), tmp_path)
    mine = {
        "distributed.comm.tls.ca-file": theirs.tls_ca_file,
        "distributed.comm.tls.client.cert": theirs.tls_client_cert,
        "distributed.comm.tls.client.key": theirs.tls_client_key,
    }
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", security=theirs
        ) as cluster,
        dask.config.set(mine),
    ):
        engine = connect(cluster.scheduler_address, None)
        try:
            assert engine.client.submit(os.getpid).result() != os.getpid()
        finally:
            engine.close()


@pytest.mark.parametrize(
    ("scheduler", "warned"),
    [("tcp://10.0.0.1:8786", True), ("localhost:8786", True), ("tls://10.0.0.1:8786", False)],
)
def test_a_scheduler_that_everybody_can_command_is_warned_of(scheduler, warned):
    assert bool(warning_of(scheduler)) is warned


def test_the_warning_is_a_line_of_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grader.classroom.engines.ANSWER", 1)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ada.py").write_text("def broadcast(x, src): ...\n")
    asked = [str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--scheduler", "127.0.0.1:9"]
    assert main(["grade", *asked, "--sandbox", "none", "--layout", "files"]) == 2
    lines = capsys.readouterr().err.splitlines()
    (warning,) = [line for line in lines if line.startswith("grader: warning:")]
    assert "127.0.0.1:9 is reached without TLS" in warning


# SLURM. -----------------------------------------------------------------------------


@pytest.fixture
def slurm_commands(tmp_path, monkeypatch):
    """There is no SLURM here: commands of its names that keep what is submitted."""
    submit = f"cp $1 {tmp_path}/part && mv {tmp_path}/part {tmp_path}/job"
    for name, line in (("sbatch", f"{submit}; echo Submitted batch job 7"), ("scancel", "")):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\n{line}\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def submitted(slurm_commands):
    """The file of the job that is submitted, when it is."""
    until = time.monotonic() + 30
    while not (slurm_commands / "job").exists():
        assert time.monotonic() < until, "no job was submitted"
        time.sleep(0.01)
    return slurm_commands / "job"


def test_the_job_script_for_slurm(slurm_commands):
    engine = slurm(
        1, cores=2, memory="8GB", walltime="01:00:00", queue="teaching", account="course"
    )
    try:
        script = submitted(slurm_commands).read_text()
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


def test_a_job_of_slurm_has_the_certificate_and_others_have_not(slurm_commands, stranger):
    """The job is run here; its certificate is in a folder that nobody else can look into."""
    before = listening(psutil.Process())
    engine = slurm(1, cores=1, memory="1GB")
    job = None
    try:
        script = submitted(slurm_commands)
        (folder,) = slurm_commands.glob(".gather-round-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        job = subprocess.Popen(
            ["bash", str(script)], stderr=subprocess.DEVNULL, start_new_session=True
        )
        engine.client.wait_for_workers(1, timeout=60)
        places = [one for one in listening(psutil.Process()) if one not in before]
        words = {heard(one) or heard(one, stranger) for one in places}
        (keeper,) = engine.client.run(os.getppid).values()
        served = psutil.Process(keeper).ppid()
    finally:
        engine.close()
        if job is not None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    assert served == job.pid
    assert not folder.exists()
    assert words == {"", "HTTP/1.1 404 Not Found"}


def test_a_machine_without_slurm_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RequestError, match="sbatch is not installed here"):
        slurm(1, cores=2, memory="8GB")


def test_a_cluster_that_is_not_configured_is_said(slurm_commands):
    with pytest.raises(RequestError, match=r"cores are not set; see docs/grading\.md"):
        slurm(1)


def test_slurm_leaves_ctrl_c_to_the_grading():
    """dask-jobqueue sets a handler of its own when it is imported, which ends in silence."""
    code = (
        "import signal\n"
        "from grader.classroom.engines import slurm\n"
        "from headcount.core.errors import RequestError\n"
        "try:\n"
        "    slurm(1)\n"
        "except RequestError as error:\n"
        "    print(error)\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said, kept = done.stdout.splitlines()
    assert said.startswith("sbatch is not installed here")
    assert kept == "True"
