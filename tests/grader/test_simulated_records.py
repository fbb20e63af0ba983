"""The record of a simulated run beside that of a real one: the same messages, the same numbers."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from grader.api import catalogue
from grader.report.rounds import film
from grader.submission.submission import Submission, live_program
from headcount.core.verdict import Traffic
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import simulate
from headcount.trace.lanes import lanes

ROOT = Path(__file__).resolve().parents[2]

#: A message takes a second, whatever its size; ranks compute in no time.
SECONDS = Flat(alpha=1, beta=0)

EXERCISES = {
    "broadcast": "02_broadcast",
    "scatter": "03_scatter_gather",
    "gather": "03_scatter_gather",
    "all_gather": "05_all_gather",
    "ring_all_gather": "05_all_gather",
    "reduce_scatter": "06_reduce_scatter",
    "ring_reduce_scatter": "06_reduce_scatter",
    "all_reduce_rooted": "07_all_reduce",
    "all_to_all": "08_all_to_all",
    "all_to_all_uneven": "08_all_to_all",
    "ring_all_reduce": "11_ring_all_reduce",
}

SIZES = (2, 3, 4, 5, 8)


@functools.cache
def solution(chapter):
    return Submission.from_file(ROOT / "solutions" / f"{chapter}.ipynb").program


def jobs(name, n, most=3):
    """The first cases of an exercise."""
    exercise = catalogue()[name]
    for case in exercise.cases(7, n)[:most]:
        arguments = tuple(case.arguments(rank) for rank in case.ranks)
        yield Job(name, arguments, exercise.packed_adapter(), exercise.traffic.allowed, seconds=60)


def both(program, job):
    """The outcome on real ranks, and that on simulated ones."""
    launcher = default_launcher()
    with ProcessWorld(launcher, len(job.arguments), program) as world:
        real = world.run(job)
    simulated = simulate(launcher, program, job, SECONDS, recorded=100_000, counted=True)
    assert real.failure is None, real.failure
    assert simulated.failure is None, simulated.failure
    return real, simulated


def messages(trace):
    return Counter(
        (m.source, m.destination, m.tag, m.count, m.nbytes, m.dtype, m.site, m.start)
        for m in trace.messages
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_same_messages_and_the_same_traffic(name, n):
    program = solution(EXERCISES[name])
    for job in jobs(name, n, 1):
        real, simulated = both(program, job)
        assert messages(simulated.trace) == messages(real.trace)
        assert simulated.trace.traffic == real.trace.traffic
        tally = simulated.tally
        assert replace(simulated.trace.traffic, rounds=0) == Traffic(**asdict(tally.traffic))
        assert tally.max_sent_elements == simulated.trace.max_sent_elements
        assert tally.strangers == len(simulated.trace.strangers())
        # ports serve messages in the order that a replay in unit time has
        assert simulated.seconds == real.trace.traffic.rounds


def recorded(function, size, *arguments, most=10_000, cluster=SECONDS):
    job = Job("f", (arguments,) * size, seconds=60)
    return simulate(default_launcher(), live_program(function), job, cluster, recorded=most)


def real(function, size, *arguments):
    launcher = default_launcher()
    with ProcessWorld(launcher, size, live_program(function)) as world:
        return world.run(Job("f", (arguments,) * size, seconds=60))


def test_receives_from_anybody_are_in_the_record_with_their_sources():
    def collect():
        rank, n = dist.get_rank(), dist.get_world_size()
        if rank:
            dist.send(torch.full((2,), float(rank)), 0)
            return None
        return [dist.recv(torch.empty(2)) for _ in range(1, n)]

    simulated, outcome = recorded(collect, 4), real(collect, 4)
    assert simulated.trace.wildcards
    assert sorted(simulated.results[0].value) == sorted(outcome.results[0].value) == [1, 2, 3]
    order = [op.peer for op in simulated.trace.operations[0]]
    assert order == simulated.results[0].value
    assert simulated.trace.traffic == outcome.trace.traffic
    assert {m[:-1] for m in messages(simulated.trace)} == {m[:-1] for m in messages(outcome.trace)}


def test_groups_and_their_messages_are_in_the_record():
    def among_the_odd():
        rank = dist.get_rank()
        odd = dist.new_group([1, 3])
        if rank % 2:
            peer = 4 - rank
            request = dist.isend(torch.zeros(3), peer, group=odd, tag=5)
            dist.recv(torch.empty(3), peer, group=odd, tag=5)
            request.wait()

    simulated, outcome = recorded(among_the_odd, 4), real(among_the_odd, 4)
    assert messages(simulated.trace) == messages(outcome.trace)
    sends = list(simulated.trace.sends())
    assert [(op.rank, op.peer) for op in sends] == [(1, 3), (3, 1)]
    assert len({op.group for op in sends}) == 1
    assert "world" not in {op.group for op in sends}


def test_a_record_that_is_too_long_is_given_up_and_the_run_is_not():
    def chat():
        rank = dist.get_rank()
        for _ in range(100):
            (dist.send if rank else dist.recv)(torch.zeros(1), 1 - rank)

    whole = recorded(chat, 2)
    events = sum(len(ops) for ops in whole.trace.operations)
    assert (events, whole.overflow) == (200, False)
    long = recorded(chat, 2, most=150)
    assert (long.trace, long.overflow, long.failure) == (None, True, None)
    assert long.messages == 100


def test_lanes_show_virtual_time():
    def pair():
        import time

        rank = dist.get_rank()
        if rank == 0:
            time.sleep(5)
        (dist.recv if rank else dist.send)(torch.zeros(1), 1 - rank)

    found = lanes(recorded(pair, 2).trace)
    waits = [lane.seconds("send") + lane.seconds("recv") for lane in found.lanes]
    assert [round(seconds, 6) for seconds in waits] == [1, 6]
    assert round(found.end / 1e9, 6) == 6
    (line,) = found.lines
    assert [round(moment / 1e9, 6) for moment in (line.start, line.end)] == [5, 6]
    assert not found.hangs


def test_a_film_shows_the_rounds():
    (job,) = jobs("ring_all_gather", 3, 1)
    _, simulated = both(solution("05_all_gather"), job)
    found = film(simulated.trace, "ring_all_gather", tags=False)
    assert found.rounds == 2
    assert [[(a.source, a.destination) for a in frame.arrows] for frame in found.frames] == [
        [(0, 1), (1, 2), (2, 0)],
        [(0, 1), (1, 2), (2, 0)],
        [],
    ]
