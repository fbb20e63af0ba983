"""A rank that is killed or late: the others go on, and only what they do themselves counts."""

from __future__ import annotations

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from headcount import run
from headcount.core.errors import RequestError
from headcount.core.events import Completed, Entered, Left, Posted
from headcount.core.packing import live_program
from headcount.core.verdict import Diagnosis
from headcount.core.wire import AT_RETURN, Put, StepCount
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Delay, Job, Kill
from support.worlds import line_in, play

POSTED = Posted(0, "send", 1, 0, "world", 1, 8, "int64", "", True, False, "f.py", 1, 0, 0, 0)
PUT = Put("key", b"", None, 1)


@pytest.mark.parametrize(
    ("step", "reached"),
    [
        (0, [True, True, True, True]),
        (1, [False, True, True, True]),
        (2, [False, False, True, True]),
        (3, [False, False, False, True]),
        (AT_RETURN, [False, False, False, True]),
    ],
)
def test_a_step_is_what_other_ranks_can_learn_of(step, reached):
    count = StepCount(step)
    assert [count.reached(one) for one in (Entered(0), POSTED, PUT, Left(False, 0))] == reached


def test_a_function_that_raises_has_not_come_to_its_return():
    count = StepCount(AT_RETURN)
    assert not count.reached(Completed(0, 0))
    assert not count.reached(Left(True, 0))


@pytest.mark.parametrize(
    ("step", "found"),
    [(0, [True, False]), (1, [True, True]), (2, [True, True]), (AT_RETURN, [True, True])],
)
def test_a_rank_dies_at_its_step_every_time(step, found):
    def answer():
        store, rank = dist.distributed_c10d._get_default_store(), dist.get_rank()
        store.set(f"first {rank}", "")
        if rank == 1:
            return None
        try:
            dist.recv(torch.zeros(1), 1)
        except RuntimeError:  # the connection breaks when it is dead
            return [store.check([f"first {peer}"]) for peer in range(2)]

    outcome = play(answer, 2, allowed=None, killed=Kill(1, step))
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == [found, None]
    assert outcome.trace.call_spans[1].how in ("gone", "returned")


def test_a_dead_rank_holds_its_arguments_and_the_world_is_over():
    def answer(x):
        return x + 1

    with ProcessWorld(default_launcher(), 2, live_program(answer)) as world:
        assert world.run(Job("answer", ((1,), (2,)))).failure is None
        outcome = world.run(Job("answer", ((1,), (2,)), killed=Kill(0, AT_RETURN)))
        assert not world.usable
    assert outcome.failure is None
    assert [one.value for one in outcome.results] == [None, 3]
    assert outcome.results[0].arguments == (1,)


def test_a_collective_without_the_dead_rank_is_a_deadlock_and_its_name_is_told():
    def answer():
        dist.all_reduce(torch.ones(1))

    outcome = play(answer, 3, allowed=None, killed=Kill(1, 0))
    assert outcome.failure is not None
    assert outcome.failure.diagnosis is Diagnosis.DEADLOCK
    assert outcome.failure.message.endswith("; but rank 1 has been killed")
    assert outcome.failure.killed == (1,)


def test_giving_up_on_a_dead_rank_leaves_nothing_undone():
    def answer():
        try:
            dist.all_reduce(torch.ones(1), async_op=True).wait(timedelta(seconds=0.05))
        except RuntimeError:
            return "gave up"

    outcome = play(answer, 2, allowed=None, killed=Kill(0, 0))
    assert outcome.failure is None
    assert outcome.results[1].value == "gave up"


def test_a_late_rank_finds_what_others_did_before_it_came_and_none_of_it_is_left_undone():
    def answer():
        store, rank = dist.distributed_c10d._get_default_store(), dist.get_rank()
        if rank == 0:
            return store.check(["gave up"])
        try:
            dist.all_reduce(torch.ones(1), async_op=True).wait(timedelta(seconds=0.05))
        except RuntimeError:
            store.set("gave up", "")
            return "gave up"

    with ProcessWorld(default_launcher(), 2, live_program(answer)) as world:
        outcome = world.run(Job("answer", ((), ()), allowed=None, late=(Delay(0, 0.5),)))
        assert not world.usable
    assert outcome.failure is None
    assert [one.value for one in outcome.results] == [True, "gave up"]
    first, second = outcome.trace.call_spans
    assert first.entered - second.entered > 0.3e9


def test_what_a_survivor_does_is_its_own_failure():
    def answer():
        if dist.get_rank() == 1:
            raise ValueError("mine")

    outcome = play(answer, 2, killed=Kill(0, 0))
    assert outcome.failure is not None
    assert (outcome.failure.diagnosis, outcome.failure.rank) == (Diagnosis.EXCEPTION, 1)


def test_a_group_is_given_up_after_its_time_limit():
    def answer():
        limit = timedelta(seconds=0.1)
        try:
            dist.new_group([0, 1], timeout=limit, use_local_synchronization=True)
        except RuntimeError:
            return "gave up"

    outcome = play(answer, 2, allowed=None, killed=Kill(1, 0))
    assert outcome.failure is None
    assert outcome.results[0].value == "gave up"


def test_a_reader_may_have_a_rank_killed():
    def answer():
        return dist.get_rank()

    finished = run(answer, 3, kill=(1, 0))
    assert (finished.killed, list(finished)) == (1, [0, None, 2])
    assert repr(finished) == "rank 0: 0\nrank 1: killed\nrank 2: 2"


@pytest.mark.parametrize(
    ("kill", "backend", "message"),
    [
        (2, "gloo", "kill takes a rank and a step"),
        ((2, 0), "gloo", "the ranks are 0 to 1"),
        ((1, -1), "gloo", "steps count from 0"),
        ((1, 0), "nccl", "killed on NCCL"),
    ],
)
def test_a_kill_that_is_none_is_refused(kill, backend, message):
    with pytest.raises(RequestError, match=message):
        run(lambda: None, 2, kill=kill, backend=backend)


# The store. -----------------------------------------------------------------------


def test_ranks_that_all_wait_for_the_store_are_stuck():
    def answer():
        store = dist.distributed_c10d._get_default_store()
        store.get("nobody sets it")

    outcome = play(answer, 2, allowed=None)
    assert outcome.failure is not None
    assert outcome.failure.diagnosis is Diagnosis.DEADLOCK
    line = line_in(answer, "nobody sets")
    assert f"ranks 0 and 1 wait at line {line} for 'nobody sets it' in the store" in (
        outcome.failure.message
    )


def test_a_rank_may_wait_for_an_entry_that_another_puts_there_after_a_while():
    def answer():
        store = dist.distributed_c10d._get_default_store()
        if dist.get_rank() == 1:
            try:
                store.wait(["never"], timedelta(seconds=0.2))
            except dist.DistStoreError:
                store.set("late", "x")
        return store.get("late").decode()

    outcome = play(answer, 2, allowed=None)
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == ["x"] * 2


def test_entries_are_those_of_one_call():
    def answer():
        store = dist.distributed_c10d._get_default_store()
        there = store.check([f"from {dist.get_rank()}"])
        store.set(f"from {dist.get_rank()}", "x")
        return there

    with ProcessWorld(default_launcher(), 2, live_program(answer)) as world:
        for _ in range(2):
            outcome = world.run(Job("answer", ((),) * 2, allowed=None))
            assert [result.value for result in outcome.results] == [False, False]
