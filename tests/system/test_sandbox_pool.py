"""Sandboxes forked from one process, and what is left of its rights in them."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from grader.api import catalogue
from grader.judge.judge import Judge, Settings
from grader.sandbox.sandboxes import SandboxPool, missing, new_sandbox
from grader.sandbox.server import FILES, RANK_THREADS, THREADS
from grader.submission.submission import Submission
from headcount.core.errors import RequestError, WorldError
from headcount.core.verdict import Diagnosis
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.rank.process_limits import CAP_KILL, CAP_SETUID

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")

ROOT = Path(__file__).resolve().parents[2]

ANSWERS = Submission.from_bytes(
    b"""
import os, socket, time, torch, torch.distributed as dist

def computes():
    while True:
        pass

def sleeps():
    time.sleep(1000)

def one_sleeps():
    if dist.get_rank() == 1:
        time.sleep(1000)
    dist.recv(torch.zeros(1), 1)

def takes_its_time():
    time.sleep(0.3)

def takes_breaks():
    for _ in range(12):
        time.sleep(0.2)
        request = dist.isend(torch.zeros(1), 1 - dist.get_rank())
        dist.recv(torch.zeros(1), 1 - dist.get_rank())
        request.wait()

def sends_much():
    rank, n = dist.get_rank(), dist.get_world_size()
    sent, got = torch.full((4_000_000,), float(rank)), torch.empty(4_000_000)
    request = dist.isend(sent, (rank + 1) %% n)
    dist.recv(got, (rank - 1) %% n)
    request.wait()
    dist.all_reduce(got)
    return got[0]

def limits():
    import resource
    kinds = ("CORE", "FSIZE", "NPROC", "NOFILE", "SIGPENDING", "MSGQUEUE", "MEMLOCK")
    return [resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in kinds]

def looks_around():
    return os.getpid(), os.getuid(), socket.gethostname(), os.path.exists(%r)
"""
    % __file__,
    "answers.py",
)


@pytest.fixture
def sandbox():
    with contextlib.closing(new_sandbox()) as made:
        yield made


def call(launcher, entry, size=2, **options):
    with ProcessWorld(launcher, size, ANSWERS.program) as world:
        return world.run(Job(entry, ((),) * size, **options))


def status_of(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_a_sandbox_refuses_a_backend_that_it_does_not_hold(sandbox):
    with pytest.raises(RequestError, match="a sandbox does not hold it"):
        ProcessWorld(sandbox, 2, ANSWERS.program, backend="mpi")
    assert call(sandbox, "looks_around").failure is None


def test_a_sandbox_has_no_right_that_its_maker_has(sandbox):
    inside = status_of(sandbox.pid)
    waits = psutil.Process(sandbox.pid).ppid()
    until = time.monotonic() + 30
    # it has forked the process inside, which may be faster
    while int(status_of(waits)["CapPrm"], 16) and time.monotonic() < until:
        time.sleep(0.01)
    outside = status_of(waits)
    maker = status_of(psutil.Process(sandbox.pid).parent().ppid())
    assert int(maker["CapEff"], 16)
    # what makes ranks users of their own, and ends them; no rank has it, see the next test
    needed = sum(1 << right for right in (CAP_KILL, CAP_SETUID)) if os.geteuid() == 0 else 0
    for status, left in ((inside, needed), (outside, 0)):
        for rights in ("CapInh", "CapBnd", "CapAmb"):
            assert int(status[rights], 16) == 0
        for rights in ("CapPrm", "CapEff"):
            assert int(status[rights], 16) == left
        assert status["NoNewPrivs"] == "1"
    if os.geteuid() == 0:
        assert set(inside["Uid"].split() + inside["Gid"].split()) == {inside["Uid"].split()[0]}
        assert inside["Uid"].split()[0] not in ("0", "65534")
        assert not inside["Groups"].strip()


def same_file(libc, first, second, fds):
    """Whether descriptors of two processes are one open file, with one position and flags."""
    kcmp, kcmp_file = {"x86_64": 312, "aarch64": 272}[os.uname().machine], 0
    answer = libc.syscall(kcmp, first, second, kcmp_file, *fds)
    if answer < 0:
        raise OSError(ctypes.get_errno(), "kcmp")
    return answer == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes users, and looks into a rank")
def test_ranks_share_no_user_and_no_open_file_and_have_no_right(sandbox):
    libc = ctypes.CDLL(None, use_errno=True)
    with ProcessWorld(sandbox, 3, ANSWERS.program) as world:
        assert world.run(Job("takes_its_time", ((),) * 3)).failure is None
        ranks = [rank.pid for rank in sandbox.processes(world.handle).values()]
        assert len(ranks) == 3
        statuses = {pid: status_of(pid) for pid in (sandbox.pid, *ranks)}
        opened = {pid: [int(fd) for fd in os.listdir(f"/proc/{pid}/fd")] for pid in statuses}
        assert same_file(libc, ranks[0], ranks[0], (1, 2))  # output and errors
        for first, second in itertools.combinations(opened, 2):
            pairs = itertools.product(opened[first], opened[second])
            assert [fds for fds in pairs if same_file(libc, first, second, fds)] == []
    with contextlib.closing(new_sandbox()) as other:
        users = {status["Uid"] for status in (*statuses.values(), status_of(other.pid))}
    assert len(users) == 5
    for status in map(statuses.get, ranks):
        assert len(set(status["Uid"].split())) == 1
        for rights in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[rights], 16) == 0
        assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


def test_a_world_has_no_more_ranks_than_a_sandbox_has_users(sandbox):
    with pytest.raises(RequestError, match="has at most 31 ranks, not 32"):
        ProcessWorld(sandbox, 32, ANSWERS.program)


@pytest.mark.skipif(os.geteuid() != 0, reason="one's own and root's are the same user then")
def test_nobody_may_look_into_the_processes_of_a_sandbox(sandbox):
    with ProcessWorld(sandbox, 2, ANSWERS.program) as world:
        assert world.run(Job("takes_its_time", ((), ()))).failure is None
        ranks = [process.pid for process in sandbox.processes(world.handle).values()]
        assert len(ranks) == 2
        for pid in (sandbox.pid, *ranks):
            # the kernel gives root what not even the same user may look into
            assert os.stat(f"/proc/{pid}/environ").st_uid == 0
            assert status_of(pid)["Uid"].split()[0] != "0"


def test_a_rank_has_limits_that_it_cannot_raise(sandbox):
    outcome = call(sandbox, "limits", size=1)
    assert outcome.failure is None
    limits = [tuple(pair) for pair in outcome.results[0].value]
    threads = RANK_THREADS if os.geteuid() == 0 else THREADS
    assert limits == [(limit, limit) for limit in (0, 0, threads, FILES, 0, 0, 0)]


def test_two_sandboxes_share_no_processes_and_no_network(sandbox):
    with contextlib.closing(new_sandbox()) as other:
        for kind in ("pid", "net", "ipc", "uts"):
            spaces = {os.readlink(f"/proc/{pid}/ns/{kind}") for pid in (sandbox.pid, other.pid)}
            assert len(spaces) == 2
            assert os.readlink(f"/proc/self/ns/{kind}") not in spaces
        before = other.counts()
        outcome = call(sandbox, "looks_around")
        assert outcome.failure is None
        assert other.counts() == before
        assert sandbox.counts() != before
        (pid, user, host, there), _ = (result.value for result in outcome.results)
        assert pid < 10
        assert host == "sandbox"
        assert not there
        assert os.geteuid() == 0 or user == 65534


def test_a_closed_sandbox_is_gone_with_all_that_is_in_it():
    made = new_sandbox()
    top = psutil.Process(made.pid)
    world = ProcessWorld(made, 2, ANSWERS.program)
    assert world.run(Job("looks_around", ((), ()))).failure is None
    inside = [top.parent(), *top.children()]
    assert len(inside) == 3
    made.close()
    world.close()
    assert not top.is_running()
    # its maker still has to take notice of that
    assert psutil.wait_procs(inside, timeout=30)[1] == []


def test_sandboxes_end_with_the_process_that_has_asked_for_them():
    script = (
        "import sys, time; sys.argv = ['-m']\n"
        "from grader.sandbox.sandboxes import new_sandbox as n;"
        " made = [n(), n()]; print(*(one.pid for one in made), flush=True); time.sleep(1000)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    made = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
    assert len(made) == 2
    process.kill()
    process.communicate()
    assert psutil.wait_procs(made, timeout=30)[1] == []


def test_a_maker_that_was_killed_takes_its_sandboxes_along_and_says_so():
    pool = SandboxPool()
    first = pool.sandbox()
    made = [psutil.Process(first.pid)]
    psutil.Process(pool.pid).kill()
    assert psutil.wait_procs(made, timeout=30)[1] == []
    with pytest.raises(WorldError, match="no sandbox can be started"):
        pool.sandbox()
    assert not pool.usable
    first.close()
    pool.close()


ADOPTED = """
import os, psutil, sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from grader.sandbox import sandboxes as sandbox
from headcount.launch import launchers

pool = sandbox.SandboxPool()
pool.wait()
start, started = os.pipe()
forks = []
for turn in range(2):
    fork = os.fork()
    if fork == 0:
        os.close(started)
        sandbox.adopt(pool)
        os.read(start, 1)  # its end: both ask at a time
        for _ in range(3):
            first = sandbox.new_sandbox()
            assert psutil.Process(pool.pid) in psutil.Process(first.pid).parents()
            first.close()
        print("adopted", flush=True)
        os._exit(0)
    forks.append(fork)
os.close(started)
print([os.waitpid(fork, 0)[1] for fork in forks], flush=True)
fork = os.fork()
if fork == 0:
    sandbox.adopt(pool)
    psutil.Process(pool.pid).kill()
    launchers.readable(pool.connection.fileno(), 30)  # its end
    second = sandbox.new_sandbox()
    mine = psutil.Process() in psutil.Process(second.pid).parents()
    print("its own, when that has ended:", mine, flush=True)
    second.close()
    os._exit(0)
os.waitpid(fork, 0)
pool.close()
print("left:", psutil.Process().children())
"""


def test_forks_adopt_a_pool_together_and_make_their_own_when_that_has_ended():
    done = subprocess.run(
        [sys.executable, "-c", ADOPTED], capture_output=True, text=True, timeout=100
    )
    said = "adopted\nadopted\n[0, 0]\nits own, when that has ended: True\nleft: []\n"
    assert (done.stdout, done.stderr) == (said, "")


def test_trying_it_out_takes_no_torch(capfd):
    SandboxPool.rehearse()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("entry", "rank"), [("sleeps", 0), ("one_sleeps", 1)])
def test_a_rank_that_sleeps_is_not_waited_for_till_the_end(sandbox, entry, rank):
    failure = call(sandbox, entry, seconds=100, effort=0.5).failure
    assert failure.diagnosis is Diagnosis.TIMEOUT
    line = 9 if entry == "sleeps" else 13
    place = f"rank {rank} is still running at line {line}"
    assert failure.message == f"no end after 0.5 s of sleep: {place}"


def test_a_rank_that_computes_is_given_its_share_and_no_more(sandbox):
    failure = call(sandbox, "computes", seconds=100, effort=0.5).failure
    assert failure.diagnosis is Diagnosis.TIMEOUT
    assert failure.message.startswith("no end after 0.5 s of computing: rank 0 is still running")


@pytest.mark.parametrize("subgroups", [False, True])
def test_messages_may_be_longer_than_a_connection_takes_at_once(sandbox, subgroups):
    with ProcessWorld(sandbox, 3, ANSWERS.program, subgroups=subgroups) as world:
        outcome = world.run(Job("sends_much", ((),) * 3, allowed=None))
    assert outcome.failure is None
    assert [float(result.value) for result in outcome.results] == [3, 3, 3]


@pytest.mark.parametrize("entry", ["takes_its_time", "takes_breaks"])
def test_a_rank_that_takes_its_time_may(sandbox, entry):
    assert call(sandbox, entry, effort=1.0, seconds=30).failure is None


def test_a_rank_that_dies_in_a_sandbox_costs_no_points(sandbox):
    exercise = dataclasses.replace(catalogue()["sum_of_survivors"], world_sizes=(3,))
    answer = ROOT / "grader/course/answers/22_failures/right/sum_of_survivors_store.py"
    judge = Judge(sandbox, Settings(1))
    verdict = judge.judge(exercise, Submission.from_file(answer, catalogue()))
    assert (verdict.message, verdict.score) == ("", exercise.points)
    killed = [case.name for case in verdict.cases if "is killed as it enters" in case.name]
    assert len(killed) == 2
