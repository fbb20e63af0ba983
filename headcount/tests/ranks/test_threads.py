"""Ranks with threads, time limits and futures: none is misjudged, real deadlocks are named."""

from __future__ import annotations

import _thread
import queue
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from headcount.core.events import WORLD, Expired, Failed, Posted
from headcount.launch.root_cause import RootCause
from headcount.trace.deadlock import stuck
from headcount.trace.message_matcher import MessageMatcher
from support.worlds import line_in, play

#: What must come at once, even on a busy machine, is there long before the limit of a job.
AT_ONCE = 5.0


def one():
    return torch.ones(1)


def none():
    return torch.zeros(1)


def other_rank():
    return 1 - dist.get_rank()


# Right programs. ------------------------------------------------------------------


def a_thread_sends_late():
    def send():
        time.sleep(0.2)
        dist.send(one(), other_rank())

    thread = threading.Thread(target=send)
    thread.start()
    x = none()
    dist.recv(x, other_rank())
    thread.join()
    return x.item()


def threads_exchange_on_tags_of_their_own():
    got = {}

    def exchange(tag):
        x = none()
        first, second = (dist.send, dist.recv) if dist.get_rank() == 0 else (dist.recv, dist.send)
        for call in (first, second):
            call(one() if call is dist.send else x, other_rank(), tag=tag)
        got[tag] = x.item()

    threads = [threading.Thread(target=exchange, args=(tag,)) for tag in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(got.values()) / 4


def a_thread_serves():
    def serve():
        for _ in range(5):
            x = none()
            dist.recv(x, other_rank(), tag=1)
            dist.send(x + 1, other_rank(), tag=2)

    thread = threading.Thread(target=serve)
    thread.start()
    total = 0.0
    for _ in range(5):
        x = none()
        dist.send(x, other_rank(), tag=1)
        dist.recv(x, other_rank(), tag=2)
        total += x.item()
    thread.join()
    return total / 5


def a_pool_works():
    x = none()
    with ThreadPoolExecutor(3) as pool:
        calls = [
            pool.submit(dist.recv, x, other_rank()),
            pool.submit(dist.send, one(), other_rank()),
        ]
        for call in calls:
            call.result()
    return x.item()


def a_pool_is_left():
    x = none()
    pool = ThreadPoolExecutor(3)
    torch.idle_pool = pool  # nobody shuts it down, and its worker is idle at the end
    pool.submit(dist.recv, x, other_rank())
    dist.send(one(), other_rank())
    return pool.submit(one).result().item()


def a_queue_lies_between():
    todo = queue.Queue()

    def work():
        while (x := todo.get()) is not None:
            dist.send(x, other_rank())

    thread = threading.Thread(target=work)
    thread.start()
    x = none()
    todo.put(one())
    dist.recv(x, other_rank())
    todo.put(None)
    thread.join()
    return x.item()


def a_thread_goes_on_when_the_function_has_returned():
    x = none()
    if dist.get_rank() == 0:

        def send():
            time.sleep(0.2)
            dist.send(one(), 1)

        threading.Thread(target=send).start()
        return 1.0
    dist.recv(x, 0)
    return x.item()


def a_thread_without_an_object_sends():
    def send():
        time.sleep(0.05)
        dist.send(one(), other_rank())
        sent.release()

    sent = threading.Lock()
    sent.acquire()
    _thread.start_new_thread(send, ())
    x = none()
    dist.recv(x, other_rank())
    sent.acquire()
    return x.item()


def a_timer_sends():
    timer = threading.Timer(0.1, lambda: dist.send(one(), other_rank()))
    timer.start()
    x = none()
    dist.recv(x, other_rank())
    timer.join()
    return x.item()


def a_future_s_callback_sends():
    x, sent = none(), []
    if dist.get_rank() == 0:
        future = dist.all_reduce(none(), async_op=True).get_future()
        future.add_done_callback(lambda _: sent.append(dist.isend(one(), 1)))
        dist.recv(x, 1)
        sent[0].wait()
    else:
        dist.all_reduce(none())
        dist.recv(x, 0)
        dist.send(x, 0)
    return x.item()


def a_wait_succeeds_in_time():
    x = none()
    requests = [dist.irecv(x, other_rank()), dist.isend(one(), other_rank())]
    for request in requests:
        request.wait(timedelta(seconds=60))
    return x.item()


def a_wait_expires_and_the_program_goes_on():
    x = one()
    if dist.get_rank() == 0:
        work = dist.all_reduce(x, async_op=True)
        with pytest.raises(RuntimeError, match="imed out"):
            work.wait(timedelta(seconds=0.1))
        dist.send(one(), 1)
        work.wait()
    else:
        dist.recv(none(), 0)
        dist.all_reduce(x)
    return x.item() / 2


def a_wait_for_any_rank_expires_and_the_program_goes_on():
    x = none()
    if dist.get_rank() == 0:
        request = dist.irecv(x)
        with pytest.raises(RuntimeError, match="imed out"):
            request.wait(timedelta(seconds=0.1))
        dist.send(one(), 1)
        request.wait()
    else:
        dist.recv(x, 0)
        dist.send(x, 0)
    return x.item()


def many_futures_are_waited_for():
    x, y = one(), one()
    works = [dist.all_reduce(t, async_op=True) for t in (x, y)]
    torch.futures.wait_all([work.get_future() for work in works])
    works = [dist.all_reduce(t, async_op=True) for t in (x, y)]
    torch.futures.collect_all([work.get_future() for work in works]).wait()
    # the future's value is the tensor itself
    future = dist.all_reduce(x, async_op=True).get_future()
    future.wait()
    future.value()[0].div_(8)
    return x.item() * y.item() / 4


RIGHT = [
    a_thread_sends_late,
    threads_exchange_on_tags_of_their_own,
    a_thread_serves,
    a_pool_works,
    a_pool_is_left,
    a_queue_lies_between,
    a_thread_goes_on_when_the_function_has_returned,
    a_thread_without_an_object_sends,
    a_timer_sends,
    a_future_s_callback_sends,
    a_wait_succeeds_in_time,
    a_wait_expires_and_the_program_goes_on,
    a_wait_for_any_rank_expires_and_the_program_goes_on,
    many_futures_are_waited_for,
]


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: answer.__name__)
def test_a_right_program_is_never_called_deadlocked(answer):
    outcome = play(answer, 2, allowed=None)
    assert outcome.failure is None, outcome.failure
    assert [result.value for result in outcome.results] == [1.0, 1.0]


# Deadlocks. -----------------------------------------------------------------------


def a_thread_ends_without_sending():
    threading.Thread(target=time.sleep, args=(0.3,)).start()
    dist.recv(none(), other_rank())  # here


def the_main_thread_joins_one_that_waits():
    receive = lambda: dist.recv(none(), other_rank())  # noqa: E731  # here
    thread = threading.Thread(target=receive, name="saver")
    thread.start()
    thread.join()


def the_main_thread_waits_at_a_queue():
    filled = queue.Queue()

    def receive():
        x = none()
        dist.recv(x, other_rank())  # here
        filled.put(x)

    threading.Thread(target=receive).start()
    filled.get()


def a_simple_queue_stays_empty():
    filled = queue.SimpleQueue()

    def receive():
        x = none()
        dist.recv(x, other_rank())  # here
        filled.put(x)

    threading.Thread(target=receive).start()
    filled.get()


def a_pool_s_worker_waits():
    def receive():
        dist.recv(none(), other_rank())  # here

    with ThreadPoolExecutor(4) as pool:
        pool.submit(one).result()
        pool.submit(receive).result()


def a_lock_is_held_across_a_receive():
    lock, taken = threading.Lock(), threading.Event()

    def receive():
        with lock:
            taken.set()
            dist.recv(none(), other_rank())  # here

    threading.Thread(target=receive).start()
    taken.wait()
    with lock:
        dist.send(one(), other_rank())


def a_reentrant_lock_is_held_across_a_receive():
    lock, taken = threading.RLock(), threading.Event()

    def receive():
        with lock:
            taken.set()
            dist.recv(none(), other_rank())  # here

    threading.Thread(target=receive).start()
    taken.wait()
    with lock:
        dist.send(one(), other_rank())


def all_threads_wait():
    thread = threading.Thread(target=lambda: dist.recv(none(), other_rank(), tag=1))
    thread.start()
    dist.recv(none(), other_rank())  # here


def nobody_sets_an_event():
    if dist.get_rank() == 0:
        threading.Event().wait()  # here
    dist.recv(none(), 0)


def nobody_completes_a_future():
    if dist.get_rank() == 0:
        torch.futures.Future().wait()  # here
    dist.recv(none(), 0)


def a_thread_waits_when_the_function_has_returned():
    threading.Thread(target=lambda: dist.recv(none(), other_rank())).start()  # here


def a_future_whose_peer_is_absent():
    if dist.get_rank() == 0:
        dist.all_reduce(one(), async_op=True).get_future().wait()  # here


def futures_whose_peer_is_absent():
    if dist.get_rank() == 0:
        futures = [dist.all_reduce(one(), async_op=True).get_future() for _ in range(2)]
        torch.futures.wait_all(futures)  # here


def collected_futures_whose_peer_is_absent():
    if dist.get_rank() == 0:
        futures = [dist.all_reduce(one(), async_op=True).get_future() for _ in range(2)]
        torch.futures.collect_all(futures).wait()  # here


def a_callback_waits():
    future = dist.all_reduce(one(), async_op=True).get_future()
    future.then(lambda _: dist.recv(none(), other_rank())).wait()  # here


DEADLOCKS = [
    a_thread_ends_without_sending,
    the_main_thread_joins_one_that_waits,
    the_main_thread_waits_at_a_queue,
    a_simple_queue_stays_empty,
    a_pool_s_worker_waits,
    a_lock_is_held_across_a_receive,
    a_reentrant_lock_is_held_across_a_receive,
    all_threads_wait,
    nobody_sets_an_event,
    nobody_completes_a_future,
    a_thread_waits_when_the_function_has_returned,
    a_future_whose_peer_is_absent,
    futures_whose_peer_is_absent,
    collected_futures_whose_peer_is_absent,
    a_callback_waits,
]


@pytest.mark.parametrize("answer", DEADLOCKS, ids=lambda answer: answer.__name__)
def test_a_deadlock_among_threads_is_named_at_once(answer):
    outcome = play(answer, 2, allowed=None, seconds=30.0)
    assert outcome.failure is not None
    assert outcome.failure.diagnosis == "deadlock", outcome.failure
    assert outcome.failure.rank == 0
    assert outcome.failure.site.line == line_in(answer, "# here")
    assert outcome.seconds < AT_ONCE


def test_a_deadlock_among_threads_says_what_the_main_thread_waits_for():
    outcome = play(the_main_thread_joins_one_that_waits, 2)
    joins = line_in(the_main_thread_joins_one_that_waits, "thread.join()")
    assert f"in its thread saver, for which its main thread waits at line {joins}" in (
        outcome.failure.message
    )


def test_calls_that_differ_name_the_thread_that_makes_one():
    def answer():
        group = dist.new_group()
        save = lambda: dist.all_reduce(none(), group=group)  # noqa: E731
        thread = threading.Thread(target=save, name="the\nsaver\ud800")
        if dist.get_rank() == 0:
            thread.start()
        else:
            dist.barrier(group=group)

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis == "order_mismatch"
    assert re.search(
        r"rank 0 calls all_reduce .* in its thread the saver\?, while rank 1 calls barrier",
        failure.message,
    )


# Time limits. ---------------------------------------------------------------------


def a_wait_expires():
    if dist.get_rank() == 0:
        dist.irecv(none(), 1).wait(timedelta(seconds=0.2))  # here
    else:
        dist.recv(none(), 0)


def a_group_s_limit_expires():
    group = dist.new_group(timeout=timedelta(seconds=0.2))
    if dist.get_rank() == 0:
        dist.recv(none(), 1, group=group)  # here
    else:
        dist.recv(none(), 0)


def a_limit_that_was_set_expires():
    dist.group.WORLD.set_timeout(timedelta(seconds=0.2))
    if dist.get_rank() == 0:
        dist.recv(none(), 1)  # here
    else:
        dist.irecv(none(), 0).wait(timedelta(seconds=60))


def a_monitored_barrier_expires():
    if dist.get_rank() == 0:
        dist.monitored_barrier(timeout=timedelta(seconds=0.2))  # here
    else:
        dist.recv(none(), 0)


@pytest.mark.parametrize(
    "answer",
    [
        a_wait_expires,
        a_group_s_limit_expires,
        a_limit_that_was_set_expires,
        a_monitored_barrier_expires,
    ],
)
def test_a_time_limit_that_ends_is_the_program_s_own_exception(answer):
    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis == "exception", failure
    assert failure.rank == 0
    assert failure.site.line == line_in(answer, "# here")
    assert "imed out" in failure.message or "failed to pass monitoredBarrier" in failure.message
    assert failure.detail[0].startswith("rank 0 waited ")
    assert "rank 1" in failure.detail[0]
    assert "for 0.2 s at most" in failure.detail[0]


def test_a_rank_that_fails_is_named_and_not_the_wait_that_ends_for_it():
    def answer():
        if dist.get_rank() == 1:
            raise ValueError("no good")
        dist.irecv(none(), 1).wait(timedelta(seconds=0.3))

    failure = play(answer, 2).failure
    assert (failure.rank, failure.diagnosis) == (1, "exception")
    assert "no good" in failure.message


def they_give_up_later():
    dist.irecv(none(), other_rank()).wait(timedelta(seconds=100))  # here


def one_gives_up_later():
    group = dist.new_group(timeout=timedelta(seconds=100))
    if dist.get_rank() == 0:
        dist.recv(none(), 1)  # here
    else:
        dist.all_reduce(none(), group=group)


@pytest.mark.parametrize("answer", [they_give_up_later, one_gives_up_later])
def test_ranks_that_all_wait_when_the_time_is_over_are_out_of_time(answer):
    failure = play(answer, 2, seconds=1, allowed=None).failure
    assert failure.diagnosis == "timeout", failure
    assert failure.message.startswith("no end after 1 s: rank 0 waits to receive from rank 1 at")
    assert failure.site.line == line_in(answer, "# here")
    assert failure.detail[0].startswith("rank 1 waits ")
    assert "for 100 s at most" in failure.message + failure.detail[0]


def test_a_rank_that_goes_on_while_it_is_asked_is_not_stuck(tmp_path):
    """What it then reports of its threads was so before it went on, and no longer is."""
    asked = tmp_path / "asked"

    def answer():
        from headcount.rank.threads import Threads

        if dist.get_rank() == 0:
            while not asked.exists():
                time.sleep(0.01)
            dist.send(one(), 1)
            return
        received, inspect = threading.Event(), Threads.inspect

        def slow(self):
            seen = inspect(self)
            if not seen.acting:
                asked.touch()
                received.wait()
            return seen

        Threads.inspect = slow
        dist.recv(none(), 0)
        Threads.inspect = inspect
        received.set()
        time.sleep(0.3)  # it reports nothing for a while, so that what it said stands

    assert play(answer, 2).failure is None


# Futures and buffers. -------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True], ids=["in flight", "complete"])
def test_a_buffer_is_not_touched_before_its_future_has_been_waited_for(late):
    def answer():
        x = one()
        future = dist.all_reduce(x, async_op=True).get_future()
        if late:
            dist.barrier()
        x.zero_()
        future.wait()  # here

    failure = play(answer, 2, allowed=None).failure
    assert failure is not None
    assert failure.diagnosis == "buffer_race", failure
    assert failure.site.line == line_in(answer, "# here")


def test_a_callback_may_use_the_buffer():
    def answer():
        x = one()
        future = dist.all_reduce(x, async_op=True).get_future()
        future.then(lambda _: x.div_(2)).wait()
        return x.item()

    outcome = play(answer, 2, allowed=None)
    assert outcome.failure is None, outcome.failure
    assert [result.value for result in outcome.results] == [1.0, 1.0]


def test_a_daemon_that_still_waits_at_the_end_is_said():
    matcher = MessageMatcher(2)
    matcher.take(
        0, Posted(0, "recv", 1, 0, WORLD, 1, 4, "float32", "", True, False, "f.py", 3, 1, thread=7)
    )
    for rank in (0, 1):
        matcher.end(rank)
    failure = RootCause(matcher).leftover()
    assert failure.diagnosis == "unwaited_request"
    assert failure.message == (
        "rank 0 returns while another of its threads still waits in the recv from rank 1 at"
        " line 3; end the thread first"
    )


@pytest.mark.parametrize("given_up", [False, True])
def test_a_wait_that_will_end_with_an_exception_is_no_deadlock(given_up):
    """A message that was given up closes the connections, and the next wait there raises."""
    matcher = MessageMatcher(2)

    def receive(op, tag):
        what = (op, "recv", 1, tag, WORLD, 1, 4, "float32", "", True, False, "f.py", 3 + op, op)
        matcher.take(0, Posted(*what))

    receive(0, tag=1)
    matcher.take(0, Failed(0, 1) if given_up else Expired(0, 0, 1))
    receive(1, tag=2)
    matcher.end(1)
    assert stuck(matcher) == ([] if given_up else [0])
