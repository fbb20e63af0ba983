"""Worlds on NCCL, as far as a machine without a GPU can show them; whole where there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from grader import backends, run
from grader.course.chapters import discover
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.judge.world_factories import ProcessWorldFactory
from grader.submission.submission import Submission
from headcount.core.errors import RequestError
from headcount.core.events import WORLD
from headcount.core.verdict import Diagnosis
from headcount.launch import process_world
from headcount.launch.backends import BACKENDS
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import largest_world
from headcount.rank.recorder import Recorder
from headcount.rank.recording_group import RecordingGroup
from headcount.rank.transports.nccl import Finishing, Nccl, NcclGroup, nccl_store

ROOT = Path(__file__).resolve().parents[2]

# NCCL wants messages that cross in one batch
RING = ROOT / "grader/course/answers/11_ring_all_reduce/right/ring_all_reduce_batch.py"


def grader(*words):
    return subprocess.run(
        [sys.executable, "-m", "grader", *words],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


@pytest.mark.exhaustive
def test_the_ring_passes_or_the_reason_is_said():
    done = grader("check", str(RING), "ring_all_reduce", "--backend", "nccl", "--json")
    missing = backends()["nccl"]
    if missing:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"grader: no world on NCCL: {missing}")
        with pytest.raises(RequestError, match="no world on NCCL"):
            run(print, 2, backend="nccl")
    else:
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert found["backend"] == "nccl"
        assert found["exercises"][0]["status"] == "passed"


class OneRank(ProcessWorldFactory):
    """Worlds of one rank, as on a machine with one GPU that ranks cannot share."""

    def largest(self, launcher):
        return 1


def test_an_exercise_that_wants_more_gpus_than_there_are_is_skipped():
    judge = Judge(default_launcher(), Settings(1), OneRank())
    exercises = discover()
    submission = Submission.from_file(ROOT / "solutions" / "01_point_to_point.py", exercises)
    verdict = judge.judge(exercises["ping_pong"], submission)
    assert verdict.status is Status.SKIPPED
    assert verdict.message == "needs at least 2 ranks; there can be 1 here"
    verdict = judge.judge(exercises["exchange"], submission)
    assert verdict.status is Status.PASSED
    assert {case.world_size for case in verdict.cases} == {1}


def test_the_largest_world_is_found_by_trying(monkeypatch):
    monkeypatch.setitem(BACKENDS, "gloo", replace(BACKENDS["gloo"], devices=lambda: 1))
    monkeypatch.setattr(process_world, "shared_devices", {})
    assert largest_world(default_launcher(), "gloo") is None
    # the second time nothing is tried; where sharing fails, the devices are counted
    monkeypatch.setattr(process_world, "GREETING", b"def greet(x):\n    raise OSError\n")
    assert largest_world(default_launcher(), "gloo") is None
    process_world.shared_devices.clear()
    assert largest_world(default_launcher(), "gloo") == 1


# On NCCL, with one rank more than there are GPUs, so that two have to share one. ----

RANKS = max(torch.cuda.device_count() + 1, 2)


def on_nccl(function, *arguments):
    """Run a function on NCCL; without a GPU, see that this is refused, and return None."""
    missing = backends()["nccl"]
    if not missing:
        return run(function, RANKS, *arguments, backend="nccl", may_fail=True)
    with pytest.raises(RequestError) as refused:
        run(function, RANKS, *arguments, backend="nccl")
    assert str(refused.value) == f"no world on NCCL: {missing}"
    return None


def sums():
    x = torch.full((3,), dist.get_rank() + 1.0, device="cuda")
    dist.all_reduce(x)
    half = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        dist.all_reduce(x, group=half)
    return dist.get_backend(), x.device.type, x.tolist()


def test_ranks_share_a_gpu():
    total = RANKS * (RANKS + 1) / 2
    if (ran := on_nccl(sums)) is not None:
        twice, once = [2 * total] * 3, [total] * 3
        assert [held for *_, held in ran] == [twice if rank < 2 else once for rank in range(RANKS)]
        assert {(backend, device) for backend, device, _ in ran} == {("nccl", "cuda")}


def around(batched):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.full((1 << 22,), float(rank), device="cuda")
    theirs = torch.empty_like(mine)
    if batched:
        send = dist.P2POp(dist.isend, mine, (rank + 1) % size)
        receive = dist.P2POp(dist.irecv, theirs, (rank - 1) % size)
        for request in dist.batch_isend_irecv([send, receive]):
            request.wait()
    else:
        dist.send(mine, (rank + 1) % size)
        dist.recv(theirs, (rank - 1) % size)
    return theirs[-1].item()


def test_messages_that_cross_go_in_a_batch():
    if (ran := on_nccl(around, True)) is not None:
        assert list(ran) == [RANKS - 1.0, *range(RANKS - 1)]


def test_a_cycle_of_sends_hangs():
    if (ran := on_nccl(around, False)) is not None:
        assert ran.failure.diagnosis is Diagnosis.DEADLOCK
        assert sorted((wait.rank, wait.call, *wait.peers) for wait in ran.failure.waits) == [
            (rank, "send", (rank + 1) % RANKS) for rank in range(RANKS)
        ]


def last_rank_leaves():
    x = torch.ones(2, device="cuda")
    if dist.get_rank() < dist.get_world_size() - 1:
        dist.all_reduce(x)


def test_a_rank_that_leaves_is_named():
    if (ran := on_nccl(last_rank_leaves)) is not None:
        assert ran.failure.diagnosis is Diagnosis.DEADLOCK
        assert ran.failure.ended == (RANKS - 1,)


# The parts, with something in the place of a GPU's. ------------------------------


def test_ranks_that_share_a_gpu_are_on_machines_of_their_own(monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    Nccl().prepare(1, 2)
    assert os.environ == {}
    named = []
    for rank in range(4):
        Nccl().prepare(rank, 4)
        named.append(os.environ["NCCL_HOSTID"])
    assert named[0] == named[1] != named[2] == named[3]


class Work:
    """A request of NCCL's: waiting for it is written down."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def wait(self, *timeout):
        self.calls.append(f"wait for {self.name}")

    def result(self):
        return []


class Inner:
    """What torch's NCCL group is called with, in order."""

    def __init__(self):
        self.calls = []

    def send(self, tensors, dst, tag):
        self.calls.append(f"send to {dst}")
        return Work(self.calls, "send")

    def recv(self, tensors, src, tag):
        self.calls.append(f"recv from {src}")
        return Work(self.calls, "recv")

    def begin_batch(self):
        self.calls.append("begin")

    def end_batch(self):
        self.calls.append("end")
        return Work(self.calls, "batch")


class Stand:
    """A backend that batches, with tensors on the CPU."""

    name = "nccl"
    coalesces = True

    def device(self, rank):
        return torch.device("cpu")


def test_messages_of_a_batch_are_handed_over_as_one():
    inner, events = Inner(), []
    recorder = Recorder(0, lambda event, flush: events.append(event))
    recorder.begin(frozenset(), strict=True)
    group = RecordingGroup(inner, Stand(), 0, 2, [0, 1], WORLD, recorder)
    mine, theirs = torch.ones(2), torch.zeros(2)
    with group.batched():
        requests = [group.send([mine], 1, 0), group.recv([theirs], 1, 0)]
    assert inner.calls == ["begin", "send to 1", "recv from 1", "end"]
    for request in requests:
        request.wait()
    assert inner.calls[4:] == ["wait for batch"] * 2
    group.send([mine], 1, 0).wait()
    assert inner.calls[6:] == ["send to 1", "wait for send"]


def test_a_batch_that_raises_is_ended():
    inner = Inner()
    recorder = Recorder(0, lambda event, flush: None)
    recorder.begin(frozenset(), strict=True)
    group = RecordingGroup(inner, Stand(), 0, 2, [0, 1], WORLD, recorder)
    with pytest.raises(ValueError, match="no rank 5"), group.batched():
        group.send([torch.ones(2)], 5, 0)
    assert inner.calls == ["begin", "end"]


def test_ranks_meet_where_no_python_is_asked():
    told = dist.HashStore()
    first = nccl_store(told, 0)
    others = [nccl_store(told, rank) for rank in (1, 2)]
    others[0].set("id", "17")
    assert [store.get("id") for store in (first, *others)] == [b"17"] * 3
    assert others[1].add("count", 2) == 2
    assert first.add("count", 1) == 3


def test_a_request_ends_when_the_device_is_done(monkeypatch):
    """NCCL's own returns as soon as the stream knows that it has to wait."""
    order = []

    class Stream:
        def synchronize(self):
            order.append("the device is done")

    class Group:
        def allreduce(self, tensors, opts):
            # of a call that is not asynchronous, torch's returns nothing
            return Work(order, "all_reduce") if opts.asyncOp else None

        def size(self):
            return 2

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    group = NcclGroup(Group(), torch.device("cuda", 0), dist.HashStore())
    options = dist.AllreduceOptions()
    options.asyncOp = False
    request = group.allreduce([torch.ones(1)], options)
    assert isinstance(request, Finishing)
    request.wait()
    assert order == ["wait for all_reduce", "the device is done"]
    assert group.size() == 2
    assert not hasattr(group, "monitored_barrier")


def test_an_exercise_for_the_cpu_is_not_judged_on_gpus(monkeypatch):
    monkeypatch.setitem(BACKENDS, "gloo", replace(BACKENDS["gloo"], devices=lambda: 1))
    exercises = discover()
    submission = Submission.from_file(ROOT / "solutions" / "18_profiling.py", exercises)
    judge = Judge(default_launcher(), Settings(1), OneRank())
    verdict = judge.judge(exercises["time_kernel"], submission)
    assert verdict.status is Status.SKIPPED
    assert verdict.message == "its tensors are on the CPU, and gloo's are not"
