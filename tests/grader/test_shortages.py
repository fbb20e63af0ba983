"""What a machine lacks is said in one sentence; nothing leaks, and nobody is blamed."""

from __future__ import annotations

import os
import resource
import tempfile

import pytest
import torch

import grader
from grader.course.mpi import job as mpi_job
from grader.exercise.cases import Kind
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.core.errors import WorldError
from headcount.launch.launchers import ChannelEnds, default_launcher, readable
from tests.declarations import declare

TWICE = declare(
    signature="twice(x: Tensor) -> Tensor",
    summary="x doubled",
    inputs=lambda draw: [draw.case("a", x=draw.per_rank(Kind(torch.float32, (3,))))],
    expected=lambda c: [2 * x for x in c.x],
    world_sizes=(2, 60),
    hints=("first",),
)


def descriptors():
    return len(os.listdir("/dev/fd"))


@pytest.fixture
def few_files():
    """Room for some descriptors more than there are, but not for a world of 60."""
    default_launcher().dangers()  # it has started
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/dev/fd"))) + 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_limit_on_open_files_is_the_machines_and_leaks_nothing(few_files):
    submission = Submission.from_function(lambda x: 2 * x, "twice")
    judge = Judge(default_launcher(), Settings(1))
    before = descriptors()
    verdict = judge.judge(TWICE, submission)
    assert verdict.status is Status.ERROR
    assert "ulimit -n" in verdict.message
    assert descriptors() == before


def test_channels_that_cannot_all_be_opened_are_closed(few_files):
    before = descriptors()
    with pytest.raises(WorldError, match="no channels for 64 ranks"):
        ChannelEnds.make(64)
    assert descriptors() == before


def test_descriptors_above_1023_work():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("no room for so many descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    try:
        reading, writing = os.pipe()
        assert reading > 1023
        assert not readable(reading, 0)
        os.write(writing, b"x")
        assert readable(reading, 1.0)
        os.close(reading)
        os.close(writing)
        assert list(grader.run(lambda: 1, 2)) == [1, 1]
        assert list(grader.simulate(lambda: 1, 2)) == [1, 1]
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_sockets_folder_is_short(monkeypatch):
    assert mpi_job.short_folder() is None or len(tempfile.gettempdir()) > 60
    monkeypatch.setattr(tempfile, "tempdir", "/somewhere/" + "d" * 100)
    assert mpi_job.short_folder() == "/tmp"
