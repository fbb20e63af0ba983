"""Orders of arrival: which there are, that all of them are tried, and what is said of a race."""

from __future__ import annotations

import torch
import torch.distributed as dist

from headcount import run
from headcount.core.packing import live_program
from headcount.core.verdict import ArrivalOrders, Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.trace.wildcard_schedules import Exploration, WildcardPolicy


def explored(function, n, most=100):
    """What the ranks return in each order that is tried, and the count of orders."""
    launcher, found = default_launcher(), []
    exploration = Exploration(most, seconds=60)
    policy = WildcardPolicy()
    with ProcessWorld(launcher, n, live_program(function)) as world:
        while policy is not None:
            outcome = world.run(Job("f", ((),) * n, allowed=None, policy=policy))
            assert outcome.failure is None, outcome.failure
            found.append(tuple(result.value for result in outcome.results))
            exploration.add(outcome.trace)
            policy = exploration.next()
    return found, exploration.orders


def as_they_come():
    x, n = torch.zeros(1), dist.get_world_size()
    if dist.get_rank() == 0:
        return tuple(dist.recv(x) for _ in range(n - 1))
    return dist.send(x, 0)


# Which orders there are. ------------------------------------------------------------


def test_all_orders_of_three_messages_are_tried_once():
    found, orders = explored(as_they_come, 4)
    assert sorted(values[0] for values in found) == [
        (1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)
    ]  # fmt: skip
    assert orders == ArrivalOrders(6, 6, exhausted=True)


def test_the_first_two_orders_differ_most():
    found, orders = explored(as_they_come, 5, most=2)
    assert [values[0] for values in found] == [(4, 3, 2, 1), (1, 2, 3, 4)]
    assert (orders.tried, orders.exhausted) == (2, False)
    assert str(orders) == f"2 of {orders.known} known orders tried"


def test_a_message_that_is_sent_later_may_come_first():
    """Rank 2 sends to rank 0 only when it has heard from ranks 3 and 4."""

    def chained():
        x, rank = torch.zeros(1), dist.get_rank()
        if rank in (0, 2):
            found = [dist.recv(x), dist.recv(x)]
            if rank == 2:
                dist.send(x, 0)
            return tuple(found)
        return dist.send(x, {1: 0, 3: 2, 4: 2}[rank])

    found, orders = explored(chained, 5)
    assert sorted({(values[0], values[2]) for values in found}) == [
        ((1, 2), (3, 4)), ((1, 2), (4, 3)), ((2, 1), (3, 4)), ((2, 1), (4, 3))
    ]  # fmt: skip
    assert orders == ArrivalOrders(4, 4, exhausted=True)


def test_what_a_barrier_parts_is_not_exchanged():
    def twice():
        x, found = torch.zeros(1), []
        for _ in range(2):
            if dist.get_rank() == 0:
                found += [dist.recv(x), dist.recv(x)]
            else:
                dist.send(x, 0)
            dist.barrier()
        return found

    found, orders = explored(twice, 3)
    assert len(found) == 4
    assert orders == ArrivalOrders(4, 4, exhausted=True)


def test_what_was_sent_because_of_a_receive_cannot_come_before_it():
    """Rank 1 sends to rank 2 when rank 0 has its message, and rank 2 then to rank 0."""

    def passed_on():
        x, rank = torch.zeros(1), dist.get_rank()
        if rank == 0:
            return dist.recv(x), dist.recv(x)
        if rank == 2:
            dist.recv(x, 1)
        for to in (0, 2) if rank == 1 else (0,):
            dist.send(x, to)
        return None

    found, orders = explored(passed_on, 3)
    assert [values[0] for values in found] == [(1, 2)]
    assert orders == ArrivalOrders(1, 1, exhausted=True)


# What run makes of them. ------------------------------------------------------------


def test_a_run_gives_the_same_every_time_and_says_how_many_orders_were_tried():
    for _ in range(3):
        found = run(as_they_come, 4)
        assert found[0] == (3, 2, 1)
    assert found.orders.known > 1
    assert run(dist.get_rank, 2).orders is None


def test_a_run_that_may_hang_hangs_every_time():
    def f():
        x = torch.zeros(1)
        if dist.get_rank() != 0:
            dist.send(x, 0)
        else:
            dist.recv(x)
            dist.recv(x, 1)

    for _ in range(3):
        failure = run(f, 3, may_fail=True).failure
        assert failure.diagnosis is Diagnosis.DEADLOCK
        assert "With rank 1's it fails, with rank 2's it passes" in failure.message


def test_each_order_of_a_run_begins_with_a_fresh_program():
    counted = []

    def f():
        counted.append(1)
        return as_they_come(), len(counted)

    found = run(f, 3)
    assert found.orders == ArrivalOrders(2, 2, exhausted=True)
    assert found.failure is None
    assert found[0] == ((2, 1), 1)
