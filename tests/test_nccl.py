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
from grader.core.errors import RequestError
from grader.core.events import WORLD
from grader.core.verdict import Status
from grader.course.chapters import discover
from grader.judge import judge as judging
from grader.judge.judge import Judge, Settings
from grader.launch import process_world
from grader.launch.backends import BACKENDS
from grader.launch.launchers import default_launcher
from grader.launch.process_world import largest_world
from grader.rank.recorder import Recorder
from grader.rank.recording_group import RecordingGroup
from grader.rank.transports.nccl import Finishing, NcclGroup, nccl_store
from grader.submission.submission import Submission

ROOT = Path(__file__).resolve().parent.parent

RING = ROOT / "solutions" / "11_ring_all_reduce.py"


def grader(*words):
    return subprocess.run(
        [sys.executable, "-m", "grader", *words],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


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


def test_an_exercise_that_wants_more_gpus_than_there_are_is_skipped(monkeypatch):
    monkeypatch.setattr(judging, "largest_world", lambda launcher, backend: 1)
    judge = Judge(default_launcher(), Settings(1))
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
    monkeypatch.setattr(process_world, "_shared", {})
    assert largest_world(default_launcher(), "gloo") is None
    # the second time nothing is tried; where sharing fails, the devices are counted
    monkeypatch.setattr(process_world, "_GREETING", b"def greet():\n    raise OSError\n")
    assert largest_world(default_launcher(), "gloo") is None
    process_world._shared.clear()
    assert largest_world(default_launcher(), "gloo") == 1


# The parts, with something in the place of a GPU's. ------------------------------


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
            return Work(order, "all_reduce")

        def size(self):
            return 2

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    group = NcclGroup(Group(), torch.device("cuda", 0), dist.HashStore())
    request = group.allreduce([torch.ones(1)], dist.AllreduceOptions())
    assert isinstance(request, Finishing)
    request.wait()
    assert order == ["wait for all_reduce", "the device is done"]
    assert group.size() == 2
    assert not hasattr(group, "monitored_barrier")
