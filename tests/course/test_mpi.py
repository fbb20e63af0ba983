"""Worlds on MPI: the same programs, the same verdicts, another library below."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from grader import backends, check, run
from grader.cli.main import main
from grader.course.mpi import job as mpi_job
from headcount.core.errors import RequestError
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from ranks.test_group import COLLECTIVES
from ranks.test_worlds import FATES
from support.worlds import play

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    bool(mpi_job.missing_mpi()), reason=mpi_job.missing_mpi() or "MPI is here"
)


def values(outcome):
    assert outcome.failure is None, outcome.failure
    return [result.value for result in outcome.results]


# Who is there. -------------------------------------------------------------------


def test_ranks_are_mpis_ranks():
    def answer():
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        return dist.get_backend(), dist.get_rank() == world.rank, world.size

    for n in (1, 2, 5):
        assert values(play(answer, n, backend="mpi")) == [("mpi", True, n)] * n


def test_worlds_of_their_own_at_the_same_time():
    def answer():
        x = torch.ones(1)
        dist.all_reduce(x)
        return x.item()

    from grader.submission.submission import live_program
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    launcher = default_launcher()
    with (
        ProcessWorld(launcher, 2, live_program(answer), backend="mpi") as two,
        ProcessWorld(launcher, 3, live_program(answer), backend="mpi") as three,
    ):
        for world, n in ((three, 3), (two, 2), (three, 3)):
            outcome = world.run(Job("answer", ((),) * n, allowed=None))
            assert values(outcome) == [float(n)] * n


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="nothing tells a segment's name here")
def test_no_shared_memory_outlives_the_ranks():
    def answer():
        from pathlib import Path

        maps = Path("/proc/self/maps").read_text().splitlines()
        return [line.split(maxsplit=5)[5] for line in maps if "/dev/shm/" in line]

    for names in values(play(answer, 2, backend="mpi")):
        assert not [name for name in names if not name.endswith("(deleted)")]


# Messages. -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64],
    ids=str,
)
@pytest.mark.parametrize("elements", [0, 1, 1_000_003])
def test_messages_of_every_kind_and_size(dtype, elements):
    def answer():
        x = (torch.arange(elements) % 100).to(dtype)
        if dist.get_rank() == 0:
            dist.send(x, 1, tag=7)
            return True
        y = torch.zeros(elements, dtype=dtype)
        dist.recv(y, 0, tag=7)
        return torch.equal(x, y)

    assert values(play(answer, 2, backend="mpi")) == [True, True]


def test_nonblocking_batched_tagged_and_from_anywhere():
    def answer():
        rank, n = dist.get_rank(), dist.get_world_size()
        right, left = (rank + 1) % n, (rank - 1) % n
        mine, theirs = torch.full((3,), rank), torch.empty(3, dtype=torch.int64)
        ops = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, theirs, left)]
        for request in dist.batch_isend_irecv(ops):
            request.wait()
        found = [theirs[0].item()]
        first, second = torch.empty(1), torch.empty(1)
        requests = [dist.irecv(second, left, tag=2), dist.irecv(first, left, tag=1)]
        for tag in (1, 2):
            requests.append(dist.isend(torch.full((1,), 10.0 * tag), right, tag=tag))
        while not all(request.is_completed() for request in requests):
            pass
        found += [first.item(), second.item()]
        if rank == 0:
            inbox = torch.empty(1)
            found += [dist.recv(inbox) for _ in range(n - 1)]
        else:
            dist.send(torch.ones(1), 0)
        return found

    found = values(play(answer, 3, backend="mpi"))
    assert [one[:3] for one in found] == [[(r - 1) % 3, 10.0, 20.0] for r in range(3)]
    assert sorted(found[0][3:]) == [1, 2]


def test_subgroups_and_objects():
    def answer():
        rank = dist.get_rank()
        groups = [dist.new_group([0, 2]), dist.new_group([3, 1])]
        mine = groups[rank % 2]
        x = torch.full((2,), float(rank))
        dist.all_reduce(x, group=mine)
        names = [None, None]
        dist.all_gather_object(names, f"rank {rank}", group=mine)
        return x.tolist(), names, dist.get_backend(mine)

    # new_group sorts its ranks
    assert (
        values(play(answer, 4, allowed=None, backend="mpi"))
        == [
            ([2.0, 2.0], ["rank 0", "rank 2"], "mpi"),
            ([4.0, 4.0], ["rank 1", "rank 3"], "mpi"),
        ]
        * 2
    )


@pytest.mark.parametrize("name", ["gloo", "nccl"])
def test_no_group_of_another_backend(name):
    def answer():
        dist.new_group([0, 1], backend=name)

    failure = play(answer, 2, allowed=None, backend="mpi").failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert "this world speaks mpi" in failure.message


# Collectives. --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in COLLECTIVES if n != "barrier (monitored)"])
def test_a_collective_works_and_is_recorded(name):
    call = COLLECTIVES[name]

    def answer():
        call()

    kind = name.split(" ")[0]
    outcome = play(answer, 2, allowed=frozenset({kind}), backend="mpi")
    assert outcome.failure is None
    assert {op.kind for ops in outcome.trace.operations for op in ops} == {kind}


def test_the_values_of_every_collective():
    def answer():
        rank, n = dist.get_rank(), dist.get_world_size()
        found = {}

        def parts(count=n, size=2):
            return [torch.full((size,), 10.0 * rank + i) for i in range(count)]

        x = torch.full((2,), float(rank))
        dist.broadcast(x, 1)
        found["broadcast"] = x.tolist()
        x = torch.full((2,), float(rank))
        dist.reduce(x, 2)
        found["reduce"] = x.tolist()
        out = [torch.empty(2, 1, dtype=torch.float64) for _ in range(n)]
        dist.all_gather(out, torch.full((2, 1), float(rank), dtype=torch.float64))
        found["all_gather"] = torch.cat(out).flatten().tolist()
        out = parts() if rank == 1 else None
        dist.gather(torch.full((2,), 5.0 + rank), out, dst=1)
        found["gather"] = torch.cat(out).tolist() if out else None
        x = torch.empty(2)
        dist.scatter(x, parts() if rank == 1 else None, src=1)
        found["scatter"] = x.tolist()
        x = torch.empty(2)
        dist.reduce_scatter(x, parts())
        found["reduce_scatter"] = x.tolist()
        x = torch.empty(2)
        dist.reduce_scatter_tensor(x, torch.cat(parts()), op=dist.ReduceOp.MAX)
        found["reduce_scatter_tensor"] = x.tolist()
        out = [torch.empty(i + 1) for i in range(n)]
        dist.all_to_all(out, [torch.full((rank + 1,), 10.0 * rank + i) for i in range(n)])
        found["all_to_all"] = [t.tolist() for t in out]
        # one row to rank 0, two to rank 1, three to rank 2
        rows = torch.arange(6.0).reshape(6, 1) + 100 * rank
        x = torch.empty(3 * (rank + 1), 1)
        dist.all_to_all_single(x, rows, [rank + 1] * 3, [1, 2, 3])
        found["all_to_all_single"] = x.flatten().tolist()
        return found

    found = values(play(answer, 3, allowed=None, backend="mpi"))
    for rank, one in enumerate(found):
        assert one["broadcast"] == [1.0, 1.0]
        # MPI leaves the others' as they were
        assert one["reduce"] == ([3.0, 3.0] if rank == 2 else [float(rank)] * 2)
        assert one["all_gather"] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
        assert one["gather"] == ([5.0, 5.0, 6.0, 6.0, 7.0, 7.0] if rank == 1 else None)
        assert one["scatter"] == [10.0 + rank] * 2
        assert one["reduce_scatter"] == [30.0 + 3 * rank] * 2
        assert one["reduce_scatter_tensor"] == [20.0 + rank] * 2
        assert one["all_to_all"] == [[10.0 * r + rank] * (r + 1) for r in range(3)]
        starts = {0: [0], 1: [1, 2], 2: [3, 4, 5]}[rank]
        assert one["all_to_all_single"] == [100.0 * r + i for r in range(3) for i in starts]


REDUCTIONS = {
    "SUM": lambda t: t.sum(0),
    "PRODUCT": lambda t: t.prod(0),
    "MIN": lambda t: t.amin(0),
    "MAX": lambda t: t.amax(0),
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_of_every_dtype(op):
    """Also of those that MPI has no name for: numbers of two bytes."""
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
    dtypes += [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]

    def answer():
        found = []
        for dtype in dtypes:
            x = (torch.arange(1, 6) + dist.get_rank()).to(dtype)
            dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
            found.append(x.double())
        return found

    stacked = torch.stack([torch.arange(1, 6) + rank for rank in range(3)]).double()
    for one in values(play(answer, 3, allowed=None, backend="mpi")):
        for got, dtype in zip(one, dtypes, strict=True):
            expected = REDUCTIONS[op](stacked)
            if expected.max() < 128:
                assert torch.equal(got, expected), dtype
            elif dtype.is_floating_point:
                torch.testing.assert_close(got, expected, rtol=1e-2, atol=0)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: dist.all_reduce(torch.ones(2), op=dist.ReduceOp.AVG), "MPI has no reduction AVG"),
        (
            lambda: dist.all_reduce(torch.ones(2, dtype=torch.bfloat16), op=dist.ReduceOp.BAND),
            "MPI has no reduction BAND of torch.bfloat16",
        ),
        (lambda: dist.broadcast(torch.ones(2, 2).T, 0), "contiguous"),
        (dist.monitored_barrier, "only implemented for GLOO"),
        (
            lambda: dist.all_gather([torch.empty(3), torch.empty(3)], torch.ones(2)),
            "gives itself 2 elements and takes 3",
        ),
        (
            lambda: dist.all_to_all_single(torch.empty(3), torch.ones(3)),
            "3 rows, which is no multiple of the 2 ranks",
        ),
        (
            lambda: dist.all_to_all_single(torch.empty(3), torch.ones(3), [1, 1], [1, 2]),
            "are [1, 1]; for 2 ranks they have to be 2 numbers with the sum 3",
        ),
    ],
)
def test_what_mpi_cannot_do_is_said(call, text):
    def answer():
        call()

    failure = play(answer, 2, allowed=None, backend="mpi").failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert text in failure.message


def test_a_collective_in_flight_and_its_future():
    def answer():
        x = torch.ones(1000)
        request = dist.all_reduce(x, async_op=True)
        request.wait()
        y = torch.ones(3)
        future = dist.all_reduce(y, async_op=True).get_future()
        future.wait()
        return x.sum().item(), y.tolist()

    assert values(play(answer, 2, allowed=None, backend="mpi")) == [(2000.0, [2.0] * 3)] * 2


def test_torchs_own_data_parallelism_runs_on_it():
    def answer():
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
        model(torch.full((3, 4), float(dist.get_rank()))).sum().backward()
        return model.module.weight.grad

    (first, second) = values(play(answer, 2, allowed=None, backend="mpi"))
    assert torch.equal(first, second)
    assert torch.equal(first, torch.full((2, 4), 1.5))


# What goes wrong. ----------------------------------------------------------------


def test_sending_first_is_a_deadlock_also_where_mpi_would_keep_a_copy():
    def answer():
        peer = 1 - dist.get_rank()
        x = torch.ones(1)
        dist.send(x, peer)
        dist.recv(x, peer)

    failure = play(answer, 2, backend="mpi").failure
    assert failure.diagnosis is Diagnosis.DEADLOCK


def test_a_message_longer_than_its_buffer():
    def answer():
        if dist.get_rank() == 0:
            dist.send(torch.ones(1000), 1)
        else:
            dist.recv(torch.empty(2), 0)

    failure = play(answer, 2, backend="mpi").failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH


def test_a_group_that_not_all_ask_for():
    def answer():
        if dist.get_rank() == 0:
            dist.new_group([0, 1])

    assert play(answer, 2, backend="mpi").failure.diagnosis is Diagnosis.DEADLOCK


@pytest.mark.parametrize("act, word, text", FATES, ids=[act.__name__ for act, *_ in FATES])
def test_the_rank_at_fault_is_named_and_not_its_victims(act, word, text):
    def answer():
        if dist.get_rank() == 1:
            act()
        dist.recv(torch.empty(1), 1)

    failure = play(answer, 2, seconds=1.0 if word == "timeout" else 10.0, backend="mpi").failure
    assert (failure.diagnosis, failure.rank) == (word, 1)
    assert text in failure.message


# As people use it. ---------------------------------------------------------------


def grader(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "grader", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_run_and_check_take_a_backend():
    def who_am_i():
        return torch.tensor([dist.get_rank(), dist.get_world_size()])

    assert backends()["mpi"] == ""
    assert [x.tolist() for x in run(who_am_i, 2, backend="mpi")] == [[0, 2], [1, 2]]
    assert check(who_am_i, backend="mpi", world_sizes=[1, 3])


def test_a_backend_that_there_is_not():
    with pytest.raises(RequestError, match="'tcp' is none of them"):
        run(print, 2, backend="tcp")


@pytest.mark.slow
def test_the_command_line(capsys, tmp_path):
    name = "ring_all_reduce"
    done = grader("check", "solutions/11_ring_all_reduce.py", name, "--backend", "mpi", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["backend"] == "mpi"
    assert [one["status"] for one in found["exercises"]] == ["passed"]
    # and in this process, which has torch already
    wrong = tmp_path / "send_first.py"
    wrong.write_text(
        "import torch.distributed as dist\n"
        "def ring_all_reduce(x, op):\n"
        "    dist.send(x, 1 - dist.get_rank())\n"
        "    dist.recv(x, 1 - dist.get_rank())\n"
    )
    assert main(["check", str(wrong), name, "--backend", "mpi", "--world-sizes", "2"]) == 1
    said = capsys.readouterr().out
    assert "deadlock" in said
    assert ", on mpi)" in said


@pytest.mark.parametrize(
    "script, seconds, text",
    [
        ("echo no hosts are left >&2; exit 3", 60.0, "do not work together: no hosts are left"),
        # what the mpiexec of another MPI does
        (
            'while [ "$1" != -n ]; do shift; done; shift 2; "$@"; "$@"',
            60.0,
            "do not work together: 1",
        ),
        ("exit 1", 60.0, "it ends with status 1"),
        ("sleep 3600", 0.5, "timed out"),
    ],
)
def test_an_mpiexec_that_does_not_work_is_said(tmp_path, monkeypatch, script, seconds, text):
    broken = tmp_path / "mpiexec"
    version = '[ "$1" = --version ] && echo HYDRA && exit 0\n'
    broken.write_text(f"#!/bin/sh\n{version}{script}\n")
    broken.chmod(0o755)
    monkeypatch.setattr(mpi_job, "mpiexec_command", lambda: str(broken))
    monkeypatch.setattr(mpi_job, "LOOK", seconds)
    mpi_job.missing_mpi.cache_clear()
    mpi_job.mpiexec_options.cache_clear()
    try:
        assert text in backends()["mpi"]
        with pytest.raises(RequestError, match="no world on MPI: "):
            run(print, 2, backend="mpi")
    finally:
        mpi_job.missing_mpi.cache_clear()
        mpi_job.mpiexec_options.cache_clear()


def test_without_mpi_the_mend_is_named(monkeypatch):
    mpi_job.missing_mpi.cache_clear()
    monkeypatch.setattr(mpi_job, "mpiexec_command", lambda: None)
    try:
        assert "there is no mpiexec: python -m pip install 'mpi4py" in backends()["mpi"]
    finally:
        mpi_job.missing_mpi.cache_clear()


def test_a_killed_check_leaves_no_mpiexec(tmp_path):
    program = tmp_path / "hangs.py"
    program.write_text(
        "import pathlib, time\n"
        "def who_am_i():\n"
        f"    pathlib.Path({str(tmp_path / 'here')!r}).touch()\n"
        "    time.sleep(3600)\n"
    )
    # the stubs' socket lies in a folder of this name, which their commands and mpiexec's tell
    sockets = tempfile.mkdtemp(dir="/tmp")
    caller = subprocess.Popen(
        [sys.executable, "-m", "grader", "check", str(program), "--backend", "mpi"],
        cwd=ROOT, env={**os.environ, "TMPDIR": sockets}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "here").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        assert _commands_with(f"{sockets}/")
    finally:
        os.killpg(caller.pid, signal.SIGKILL)
        caller.wait()
    until = time.monotonic() + 30
    while _commands_with(f"{sockets}/"):
        assert time.monotonic() < until
        time.sleep(0.05)
    shutil.rmtree(sockets)


def _commands_with(text):
    return subprocess.run(["pgrep", "-f", text], capture_output=True).stdout
