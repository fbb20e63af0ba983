"""What simulated ranks take to be their own: clock, random numbers, buffers; what they break."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from headcount.core.errors import RequestError
from headcount.core.packing import live_program
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.launch.world import Job
from headcount.simulation.clusters import Flat, Nodes
from headcount.simulation.launch import simulate
from support.processes import our_processes
from support.worlds import line_in
from support.worlds import play as play_real

SECONDS = Flat(alpha=1, beta=0.5)


def play(function, size, *arguments, cluster=SECONDS, seconds=30.0, allowed=frozenset(), **how):
    job = Job("f", (arguments,) * size, seconds=seconds, allowed=allowed)
    return simulate(default_launcher(), live_program(function), job, cluster, **how)


def values(outcome):
    assert outcome.failure is None, outcome.failure
    return [result.value for result in outcome.results]


# The clock. -----------------------------------------------------------------------


def test_a_thread_that_only_computes_is_fine():
    def answer():
        found = []
        thread = threading.Thread(target=lambda: found.append(torch.ones(3).sum().item()))
        thread.start()
        thread.join()
        dist.barrier()
        return found

    assert values(play(answer, 3, allowed=None)) == [[3.0]] * 3


@pytest.mark.parametrize(
    "kind, cluster, seconds, ends, met",
    [
        # the other rank comes after 5 s, and its message after one more
        ("message", Flat(1, 0), 6, [6.0, 6.0], True),
        ("message", Flat(1, 0), 60, [6.0, 6.0], True),
        ("collective", Flat(0, 0), 2, [2.0, 5.0], False),
        ("collective", Flat(0, 0), 60, [5.0, 5.0], True),
    ],
)
def test_a_wait_with_a_time_limit_ends_at_its_virtual_time(kind, cluster, seconds, ends, met):
    def answer():
        x = torch.empty(0)
        if dist.get_rank() == 1:
            time.sleep(5)
            dist.send(x, 0) if kind == "message" else dist.barrier()
            return time.monotonic(), None, time.monotonic()
        work = dist.irecv(x, 1) if kind == "message" else dist.barrier(async_op=True)
        try:
            in_time = work.wait(timedelta(seconds=seconds))
        except RuntimeError as error:
            in_time = str(error).startswith("Timed out") and False
        then = time.monotonic()
        work.wait()
        time.sleep(100)  # nothing wakes it up early
        return then, in_time, time.monotonic()

    first, second = values(play(answer, 2, cluster=cluster, allowed=None))
    assert [first[0], second[0]] == ends
    assert first[1] is met
    assert first[2] == 100.0 + ends[1]


@pytest.mark.parametrize("seconds", [2, 5.5])
@pytest.mark.parametrize("recorded", [0, 1000])
def test_who_gives_up_a_message_closes_its_connections(seconds, recorded):
    """As gloo does: the message, and every later one of the rank, fails at both ends."""

    def answer():
        x, said = torch.empty(0), []
        if dist.get_rank() == 1:
            time.sleep(7)
            try:
                dist.send(x, 0)
            except RuntimeError as error:
                said.append(str(error))
            return said
        work = dist.irecv(x, 1)
        for again in (lambda: work.wait(timedelta(seconds=seconds)), work.wait):
            try:
                again()
            except RuntimeError as error:
                said.append(str(error))
        return [time.monotonic(), *said]

    late, failed = values(play(answer, 2, cluster=Flat(1, 0), recorded=recorded))
    assert late[0] == seconds
    assert late[1].startswith("Timed out waiting")
    assert len(late) == 3
    assert failed == ["Connection closed by peer"]


def test_time_is_virtual_and_exact():
    def clocks():
        rank = dist.get_rank()
        begun = time.time()
        time.sleep(rank)
        found = [time.perf_counter(), time.monotonic(), time.perf_counter_ns()]
        dist.send(torch.zeros(2, dtype=torch.uint8), 0) if rank else dist.recv(
            torch.zeros(2, dtype=torch.uint8), 1
        )
        return [*found, time.monotonic(), round(time.time() - begun, 3)]

    outcome = play(clocks, 2)
    assert values(outcome) == [[0, 0, 0, 3, 3], [1, 1, 10**9, 3, 3]]
    assert outcome.seconds == 3


def test_nobody_sleeps_backwards():
    def sleeps():
        time.sleep(-1)

    failure = play(sleeps, 2).failure
    assert (failure.diagnosis, failure.rank) == (Diagnosis.EXCEPTION, 0)
    assert "sleep length must be non-negative" in failure.message


# Random numbers. ------------------------------------------------------------------


def test_every_rank_draws_what_it_draws_alone():
    def draws():
        rank, n = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(rank)
        found = []
        for _ in range(3):
            found.append(torch.rand(2).tolist())
            request = dist.isend(torch.randn(1), (rank + 1) % n)
            got = torch.empty(1)
            dist.recv(got, (rank - 1) % n)
            request.wait()
            found.append(got.tolist())
            found.append(torch.empty(2).uniform_(0, 5).tolist())
            found.append(torch.nn.functional.dropout(torch.ones(8)).tolist())
            found.append(torch.randperm(5).tolist())
            found.append(torch.bernoulli(torch.full((4,), 0.5)).tolist())
        return found

    assert values(play(draws, 3)) == values(play_real(_named(draws), 3))


def _named(function):
    """A function under the name that real worlds of the tests call."""
    function.__name__ = "answer"
    return function


def test_a_seed_on_one_rank_is_no_seed_on_another():
    def seeds():
        if dist.get_rank() == 0:
            torch.manual_seed(3)
            dist.send(torch.zeros(1), 1)
        else:
            torch.manual_seed(4)
            dist.recv(torch.zeros(1), 0)
        state = torch.get_rng_state()
        first = torch.rand(3)
        torch.set_rng_state(state)
        return torch.equal(first, torch.rand(3)), torch.initial_seed()

    assert values(play(seeds, 2)) == [(True, 3), (True, 4)]


# Eager messages. ------------------------------------------------------------------


def head_to_head():
    peer = 1 - dist.get_rank()
    got = torch.zeros(4, dtype=torch.uint8)
    dist.send(torch.full((4,), dist.get_rank(), dtype=torch.uint8), peer)
    dist.recv(got, peer)
    return got.tolist()


@pytest.mark.parametrize("eager", [-1, 3, 4])
def test_sends_head_to_head_end_only_where_they_are_eager(eager):
    outcome = play(head_to_head, 2, eager=eager)
    if eager < 4:
        assert outcome.failure.diagnosis is Diagnosis.DEADLOCK
        assert outcome.failure.cycle == (0, 1)
    else:
        assert values(outcome) == [[1] * 4, [0] * 4]
        assert outcome.seconds == 3


def test_a_buffer_is_free_again_when_an_eager_message_has_left():
    def reuses():
        x = torch.zeros(1)
        if dist.get_rank():
            time.sleep(100)
            return [dist.recv(x, 0) or x.item() for _ in range(3)], time.monotonic()
        for number in range(3):
            x.fill_(number)
            dist.send(x, 1)
        x.fill_(9)
        return time.monotonic()

    # all have arrived long before anybody asks
    assert values(play(reuses, 2, eager=4)) == [0.0, ([0, 1, 2], 100.0)]


def test_eager_messages_hold_both_ports():
    def stream():
        x = torch.zeros(2, dtype=torch.uint8)
        if dist.get_rank() == 0:
            found = []
            for _ in range(2):
                for source in (1, 2):
                    dist.recv(x, source)
                    found.append(time.monotonic())
            return found
        dist.send(x, 0)
        dist.send(x, 0)
        return time.monotonic()

    # each takes two seconds, one after the other, in the order in which they were sent
    assert values(play(stream, 3, eager=2)) == [[2.0, 6.0, 6.0, 8.0], 0.0, 0.0]


def test_an_eager_message_that_nobody_receives_is_told_of():
    def sends():
        if dist.get_rank() == 0:
            dist.send(torch.zeros(3), 1)

    outcome = play(sends, 2, eager=100)
    assert outcome.failure.diagnosis is Diagnosis.UNMATCHED_MESSAGE
    assert outcome.failure.message == (
        f"rank 0 sends 3 float32 elements to rank 1 at line {line_in(sends, 'dist.send')},"
        " which rank 1 never receives"
    )
    assert len(outcome.results) == 2


def test_eager_messages_on_shared_links_are_refused():
    cluster = Nodes(1, 1.0, 0.5, 1.0, 0.5, sharing="max-min")
    with pytest.raises(RequestError, match="eager messages need links that carry one"):
        play(head_to_head, 2, cluster=cluster, eager=4)


class Summed(torch.autograd.Function):
    """The identity, whose gradient is summed over all ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


def through_three_layers(lost=None):
    x = torch.full((2,), dist.get_rank() + 1.0, requires_grad=True)
    y = x
    for layer in range(3):
        if (dist.get_rank(), layer) != lost:
            y = Summed.apply(y) * 2
    y.sum().backward()
    return x.grad


def test_a_message_of_a_batch_is_named_with_the_line_of_the_batch():
    def sends():
        if dist.get_rank() == 0:
            operation = dist.P2POp(dist.isend, torch.zeros(3), 1)
            (request,) = dist.batch_isend_irecv([operation])
            request.wait()

    (wait,) = play(sends, 2).failure.waits
    posted = line_in(sends, "dist.batch_isend_irecv")
    assert wait.text.endswith(f"(posted at line {posted})")


@pytest.mark.parametrize("size", [2, 4, 64])
def test_ranks_may_wait_for_each_other_inside_backward(size):
    expected = torch.full((2,), (2.0 * size) ** 3)
    found = values(play(through_three_layers, size, allowed=None))
    assert all(torch.equal(one, expected) for one in found)


def test_a_rank_that_is_missed_inside_backward_is_named_with_the_line():
    before = set(our_processes())  # other tests may have left helpers
    outcome = play(through_three_layers, 4, (2, 1), allowed=None)
    assert outcome.failure.diagnosis is Diagnosis.DEADLOCK
    line = line_in(Summed.backward, "dist.all_reduce")
    assert {wait.site.line for wait in outcome.failure.waits} == {line}
    assert set(our_processes()) <= before


def test_an_exception_inside_backward_is_the_ranks():
    def answer():
        x = torch.ones(2, requires_grad=True)
        if dist.get_rank() == 1:
            x.register_hook(lambda gradient: 1 / 0)
        Summed.apply(x).sum().backward()

    outcome = play(answer, 3, allowed=None)
    assert outcome.failure.diagnosis is Diagnosis.EXCEPTION
    assert outcome.failure.rank == 1
    assert "ZeroDivisionError" in outcome.failure.message


def test_collectives_started_inside_backward_go_on_beside_it():
    def answer():
        x = torch.ones(2, requires_grad=True)
        works, sums = [], []

        def hook(gradient):
            sums.append(gradient.clone())
            works.append(dist.all_reduce(sums[-1], async_op=True))
            time.sleep(3)

        x.register_hook(hook)
        (x * 2).sum().backward()
        for work in works:
            work.wait()
        return sums, time.perf_counter()

    for sums, ended in values(play(answer, 4, cluster=Flat(1, 0), allowed=None)):
        assert sums[0].tolist() == [8, 8]
        assert ended == 4  # the all-reduce takes 4 s, and the 3 s of backward pass beside it


def test_an_order_of_other_ranks_is_refused_before_anything_runs():
    with pytest.raises(RequestError, match="order names 3 ranks, and there are 2"):
        play(head_to_head, 2, cluster=Nodes(1, 1.0, 0.5, 1.0, 0.5, order=(0, 1, 2)))


# What is left over. ---------------------------------------------------------------


def test_a_request_that_nobody_waits_for_is_told_of():
    def starts():
        rank = dist.get_rank()
        if rank == 0:
            dist.isend(torch.zeros(1), 1)
        else:
            dist.recv(torch.zeros(1), 0)

    failure = play(starts, 2).failure
    assert failure == play_real(_named(starts), 2).failure
    assert failure.diagnosis is Diagnosis.UNWAITED_REQUEST


def test_what_does_not_fit_cannot_be_passed_over():
    def catches():
        peer = 1 - dist.get_rank()
        try:
            (dist.send if peer else dist.recv)(torch.zeros(2 + peer), peer)
        except Exception:
            return "never mind"

    failure = play(catches, 2).failure
    assert failure == play_real(_named(catches), 2).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH


def test_the_cause_is_chosen_by_its_kind_and_not_by_what_was_first():
    def fails():
        rank = dist.get_rank()
        if rank == 2:
            raise ValueError("first")
        (dist.send if rank else dist.recv)(torch.zeros(2 + rank), 1 - rank)

    failure = play(fails, 3).failure
    assert failure == play_real(_named(fails), 3).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH


# What ranks do to themselves. -----------------------------------------------------


def _exits():
    sys.exit(3)


def _recurses():
    return _recurses()


def _no_memory():
    raise MemoryError


def _interrupts():
    raise KeyboardInterrupt


def _destroys():
    dist.destroy_process_group()


def _begins():
    dist.init_process_group("gloo")


def _in_a_thread(call):
    with ThreadPoolExecutor() as pool:
        pool.submit(call).exception()


def _posts_in_a_thread():
    _in_a_thread(lambda: dist.isend(torch.zeros(1), 0))


def _sleeps_in_a_thread():
    _in_a_thread(lambda: time.sleep(1))


def _asks_in_a_thread():
    caught = []

    def ask():
        try:
            dist.send(torch.zeros(1), 0)
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    raise caught[0]


BROKEN = {
    "exits": (_exits, Diagnosis.EXITED, "exits with status 3"),
    "recurses": (_recurses, Diagnosis.EXCEPTION, "RecursionError"),
    "no memory": (_no_memory, Diagnosis.MEMORY_LIMIT, "out of memory"),
    "interrupts": (_interrupts, Diagnosis.EXCEPTION, "KeyboardInterrupt"),
    "destroys": (_destroys, Diagnosis.EXCEPTION, "is not for the function to call"),
    "begins": (_begins, Diagnosis.EXCEPTION, "is not for the function to call"),
    "thread": (_asks_in_a_thread, Diagnosis.EXCEPTION, "simulated ranks share one thread"),
    "posting thread": (_posts_in_a_thread, Diagnosis.EXCEPTION, "a thread of rank 1"),
    "sleeping thread": (_sleeps_in_a_thread, Diagnosis.EXCEPTION, "run(f, n)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_whatever_a_rank_does_it_is_named(name):
    what, diagnosis, words = BROKEN[name]

    def breaks():
        if dist.get_rank() == 1:
            what()
        return random.random()

    outcome = play(breaks, 3)
    assert outcome.failure is not None
    assert outcome.failure.diagnosis is diagnosis, outcome.failure
    assert outcome.failure.rank == 1
    assert words in outcome.failure.message
    assert "Traceback" not in outcome.output


def test_who_interrupts_a_simulation_leaves_no_process():
    def loops():
        while True:
            pass

    def interrupted(*_):
        raise KeyboardInterrupt

    play(lambda: None, 1)  # what starts processes stays
    before = set(our_processes())
    usual = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            play(loops, 2)
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert set(our_processes()) <= before
