"""Answers that are judged on simulated ranks alone, as our own known answers may be."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.distributed as dist

from grader.api import catalogue
from grader.exercise.cases import Kind
from grader.exercise.verdict import Status
from grader.judge.judge import Judge, Settings
from grader.judge.world_factories import ProcessWorldFactory, SimulationWorldFactory
from grader.submission.submission import Submission, live_program
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.launch.world import Job, Kill
from headcount.simulation.launch import SimulationProcess
from headcount.simulation.simulation_world import SimulationWorld
from tests import declarations
from tools import course

KIND = Kind(torch.float32, (3,))

EXERCISE = declarations.declare(
    signature="rotate(x: Tensor) -> Tensor",
    summary="x of the rank before",
    inputs=lambda draw: [draw.case(name, x=draw.per_rank(KIND)) for name in "ab"],
    expected=lambda case: [case.x[rank - 1] for rank in case.ranks],
    world_sizes=(2, 3, 5),
    hints=("first",),
)


def rotate(x):
    n, rank, got = dist.get_world_size(), dist.get_rank(), torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv(got, (rank - 1) % n)
    request.wait()
    return got


def keeps(x):
    return x.clone()


def hangs(x):
    n, rank, got = dist.get_world_size(), dist.get_rank(), torch.empty_like(x)
    dist.send(x, (rank + 1) % n)
    dist.recv(got, (rank - 1) % n)
    return got


def raises(x):
    raise ValueError("no good")


def forbidden(x):
    dist.all_reduce(x)
    return x


def takes_the_last(x):
    """Right only where the message of the rank before arrives last."""
    n, rank, got = dist.get_world_size(), dist.get_rank(), torch.empty_like(x)
    others = [other for other in range(n) if other != rank]
    requests = [dist.isend(x, other) for other in others]
    for other in others:
        dist.recv(got, None if rank == 0 else other)
        if rank and other == rank - 1:
            kept = got.clone()
    for request in requests:
        request.wait()
    return got if rank == 0 else kept


def judge(answer, worlds, exercise=EXERCISE):
    submission = Submission.from_function(answer, exercise.name)
    return Judge(default_launcher(), Settings(1), worlds).judge(exercise, submission)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (rotate, None),
        (keeps, Diagnosis.WRONG_VALUE),
        (hangs, Diagnosis.DEADLOCK),
        (raises, Diagnosis.EXCEPTION),
        (forbidden, Diagnosis.FORBIDDEN_CALL),
    ],
)
def test_a_verdict_is_the_same_on_real_and_on_simulated_ranks(answer, diagnosis):
    real = judge(answer, ProcessWorldFactory())
    simulated = judge(answer, SimulationWorldFactory())
    assert simulated.diagnosis is diagnosis
    assert course.difference(real, simulated) == ""
    assert [(one.name, one.world_size, one.diagnosis, one.traffic) for one in simulated.cases] == [
        (one.name, one.world_size, one.diagnosis, one.traffic) for one in real.cases
    ]


def test_other_orders_of_arrival_are_tried_on_simulated_ranks():
    verdict = judge(takes_the_last, SimulationWorldFactory(), replace(EXERCISE, world_sizes=(3,)))
    assert verdict.diagnosis is Diagnosis.WRONG_VALUE
    assert "The order of arrival decides: rank 0's" in verdict.message


class Counting:
    """A launcher that remembers how many processes it has been asked for at a time."""

    def __init__(self):
        self._launcher = default_launcher()
        self.sizes = []

    def __getattr__(self, name):
        return getattr(self._launcher, name)

    def launch(self, size):
        self.sizes.append(size)
        return self._launcher.launch(size)


def test_all_cases_of_a_world_are_run_in_one_process():
    launcher = Counting()
    submission = Submission.from_function(rotate, EXERCISE.name)
    judge = Judge(launcher, Settings(1), SimulationWorldFactory())
    assert judge.judge(EXERCISE, submission).passed
    # one for two ranks, and one for all larger sizes
    assert launcher.sizes == [1, 1]


def test_ranks_that_are_killed_late_or_paused_are_not_simulated():
    def killed(draw):
        return [replace(draw.case("a", x=draw.per_rank(KIND)), killed=Kill(0, 1))]

    verdict = judge(rotate, SimulationWorldFactory(), replace(EXERCISE, inputs=killed))
    assert verdict.status is Status.SKIPPED
    assert verdict.message == "a rank is killed, late or paused, and simulated ranks cannot be"


def test_a_world_of_simulated_ranks_outlives_a_failure_but_not_its_process():
    def answer(rounds):
        if rounds < 0:
            raise SystemError
        while rounds:
            pass
        return dist.get_rank()

    with (
        SimulationProcess(default_launcher()) as process,
        SimulationWorld(process, live_program(answer)) as world,
    ):
        assert world.run(Job("answer", ((-1,), (0,)))).failure is not None
        assert world.usable
        assert [one.value for one in world.run(Job("answer", ((0,),) * 3)).results] == [0, 1, 2]
        late = world.run(Job("answer", ((1,),), seconds=0.5))
        assert late.failure.diagnosis is Diagnosis.TIMEOUT
        assert not world.usable


def test_a_program_runs_as_in_a_process_of_its_own_where_another_has_run():
    def answer(rounds):
        drawn, x = [], torch.ones(1, requires_grad=True)
        for _ in range(rounds):
            drawn += [torch.empty(1).normal_().item(), torch.rand(1).item(), np.random.rand()]
            (2 * x).backward()
            dist.send(x.grad, 1) if dist.get_rank() == 0 else dist.recv(x.grad, 0)
        return drawn

    with (
        SimulationProcess(default_launcher()) as process,
        SimulationWorld(process, live_program(answer)) as world,
    ):
        jobs = [Job("answer", ((rounds,),) * 2) for rounds in (3, 2)]
        longer, shorter = ([one.value for one in world.run(job).results] for job in jobs)
    assert shorter == [drawn[:6] for drawn in longer]
    assert shorter[0] != shorter[1]


@pytest.mark.exhaustive
def test_the_command_compares_every_known_answer_both_ways(capsys):
    name = "neighbours"
    assert course.main(["--simulated", "--seed", "1", name]) in (0, 1)
    known = [claim for claim in course.claims(catalogue(), course.ROOT) if claim.exercise == name]
    *differing, last = capsys.readouterr().out.splitlines()
    answers = sum(claim.answer is not None for claim in known)
    assert re.match(rf"{answers} answers, seed 1: {len(differing)} verdicts differ; ", last)
