"""Simulations of functions that are somewhere else: results, failures, limits."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from headcount.core.packing import live_program
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.launch.world import Job
from headcount.simulation import launch as simulation
from headcount.simulation.clusters import Flat, Nodes
from headcount.simulation.launch import simulate

CLUSTER = Flat(alpha=1e-6, beta=1e-10)


def play(function, size, *arguments, cluster=CLUSTER, seconds=30.0, **limits):
    job = Job("f", (arguments,) * size, seconds=seconds, **limits)
    return simulate(default_launcher(), live_program(function), job, cluster)


def test_a_ring_of_many_ranks():
    def ring(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        got = x.clone()
        for _ in range(n - 1):
            request = dist.isend(got.clone(), (rank + 1) % n)
            dist.recv(got, (rank - 1) % n)
            request.wait()
            x += got
        return rank

    outcome = play(ring, 64, torch.ones(3))
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == list(range(64))
    assert all(result.arguments[0].tolist() == [64, 64, 64] for result in outcome.results)
    assert outcome.messages == 64 * 63
    assert outcome.seconds == 63 * (1e-6 + 12e-10)


@pytest.mark.parametrize("sharing", ["fifo", "max-min"])
def test_nodes_whose_link_is_shared(sharing):
    def swap():
        rank, n = dist.get_rank(), dist.get_world_size()
        request = dist.isend(torch.zeros(100, dtype=torch.uint8), (rank + n // 2) % n)
        dist.recv(torch.zeros(100, dtype=torch.uint8), (rank + n // 2) % n)
        request.wait()

    outcome = play(swap, 8, cluster=Nodes(4, 1e-6, 1e-11, 1e-5, 1e-9, sharing=sharing))
    assert outcome.failure is None
    assert outcome.messages == 8
    assert outcome.seconds == 1e-5 + 4 * 100 * 1e-9


def test_a_deadlock_names_ranks_and_lines():
    def head_to_head():
        rank, n = dist.get_rank(), dist.get_world_size()
        dist.send(torch.zeros(1), (rank + 1) % n)
        dist.recv(torch.zeros(1), (rank - 1) % n)

    failure = play(head_to_head, 3).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert failure.message.startswith("rank 0 waits to send to rank 1 at ")
    assert failure.cycle == (0, 1, 2)
    assert failure.site.line


def test_a_rank_that_raises_is_named():
    def raises():
        if dist.get_rank() == 2:
            raise KeyError("here")
        dist.recv(torch.zeros(1), 2)

    failure = play(raises, 4).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert failure.rank == 2
    assert "KeyError: 'here'" in failure.message


def test_ends_that_do_not_fit_are_named_with_their_lines():
    def misfit():
        if dist.get_rank():
            dist.recv(torch.zeros(3), 0)
        else:
            dist.send(torch.zeros(2), 1)

    failure = play(misfit, 2).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert failure.message.startswith("rank 0 sends 2 elements at ")
    assert "rank 1 receives into 3" in failure.message


def test_ranks_share_no_global_variables():
    seen = []

    def count():
        seen.append(dist.get_rank())
        return len(seen)

    assert [result.value for result in play(count, 5).results] == [1] * 5


def test_a_loop_without_end_ends():
    def loops():
        while True:
            pass

    failure = play(loops, 2, seconds=0.5).failure
    assert failure.diagnosis is Diagnosis.TIMEOUT


def test_what_is_printed_has_a_limit():
    def prints():
        print("x" * 100)

    assert play(prints, 2).output == ("x" * 100 + "\n") * 2
    failure = play(prints, 20, output_limit=1024).failure
    assert failure.diagnosis is Diagnosis.OUTPUT_LIMIT


def test_a_process_that_dies_is_told_of():
    def dies():
        import os

        os._exit(3)

    failure = play(dies, 2).failure
    assert failure.diagnosis is Diagnosis.EXITED
    assert "status 3" in failure.message


def test_answers_that_are_too_much_together_are_said_to_be(monkeypatch):
    monkeypatch.setattr(simulation, "ANSWERS", 100_000)
    outcome = play(lambda: torch.zeros(10_000), 8)
    assert outcome.results == ()
    assert outcome.failure.diagnosis is Diagnosis.OUTPUT_LIMIT
    assert "up to 100 kB can be brought back" in outcome.failure.message
    assert play(lambda: torch.zeros(1000), 8).failure is None


def test_a_lower_limit_on_each_answer_lowers_that_on_all():
    outcome = play(lambda: torch.zeros(10_000), 64, answer_limit=50_000)
    assert "up to 1.6 MB can be brought back" in outcome.failure.message
    assert play(lambda: torch.zeros(10_000), 32, answer_limit=50_000).failure is None


def test_a_result_that_cannot_be_told_is_its_ranks_fault_and_not_the_simulations():
    class Odd(dict):
        def items(self):
            raise ValueError("no items today")

    outcome = play(lambda: Odd(a=1), 2)
    assert outcome.failure.diagnosis is Diagnosis.EXCEPTION
    assert outcome.failure.rank == 0
    assert "no items today" in outcome.failure.message
