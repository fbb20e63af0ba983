"""Waits inside torch: of DDP's reducer, ``Join`` and the autograd engine, and what torch drops."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from headcount.core.events import ANY, WORLD, Inspected, Posted, Violated
from headcount.launch.root_cause import RootCause
from headcount.rank import threads
from headcount.rank.recorder import Recorder
from headcount.rank.requests import Gated, PrivateBuffers, Request
from headcount.trace.deadlock import stuck
from headcount.trace.message_matcher import MessageMatcher
from support.worlds import line_in, play

#: What must come at once, even on a busy machine, is there long before the limit of a job.
AT_ONCE = 5.0

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of native threads")

#: Earlier, gloo's thread has no name, and a static graph's first pass waits in the same callback.
since_213 = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13), reason="an older torch"
)


def data():
    return torch.ones(2, 3)


def layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))


def halves(state, bucket):
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda done: done.value()[0] / 2)


def hooked():
    ddp = DistributedDataParallel(layers())
    ddp.register_comm_hook(None, halves)
    return ddp


# Deadlocks. -----------------------------------------------------------------------


def the_reducer_waits():
    ddp = DistributedDataParallel(layers(), bucket_cap_mb=1e-6)
    for _ in range(2 + dist.get_rank()):
        ddp(data()).sum().backward()  # here


def the_reducer_waits_for_a_hook():
    ddp = hooked()
    for _ in range(2 + dist.get_rank()):
        ddp(data()).sum().backward()  # here


def the_reducer_waits_for_a_builtin_hook():
    ddp = DistributedDataParallel(layers())
    ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    if dist.get_rank() == 1:
        ddp(data()).sum().backward()  # here


def the_reducer_waits_in_a_static_graph():
    ddp = DistributedDataParallel(layers(), static_graph=True)
    if dist.get_rank() == 1:
        ddp(data()).sum().backward()  # here


def the_reducer_looks_for_unused_parameters():
    ddp = DistributedDataParallel(layers(), find_unused_parameters=True)
    if dist.get_rank() == 1:
        ddp(data()).sum().backward()  # here


def one_rank_joins():
    ddp = DistributedDataParallel(layers())
    if dist.get_rank() == 1:
        with Join([ddp]):
            ddp(data()).sum().backward()  # here


def a_pass_inside_another_waits():
    class Checkpointed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers()

        def forward(self, x):
            return checkpoint(self.layers, x.requires_grad_(), use_reentrant=True)

    ddp = DistributedDataParallel(Checkpointed())
    if dist.get_rank() == 1:
        ddp(data()).sum().backward()  # here


def a_future_is_waited_for_in_cpp():
    if dist.get_rank() == 1:
        future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
        torch._C.Future.wait(future)  # here


@pytest.mark.parametrize(
    "answer",
    [
        the_reducer_waits,
        the_reducer_waits_for_a_hook,
        the_reducer_waits_for_a_builtin_hook,
        pytest.param(the_reducer_waits_in_a_static_graph, marks=since_213),
        the_reducer_looks_for_unused_parameters,
        one_rank_joins,
        pytest.param(a_pass_inside_another_waits, marks=[on_linux, since_213]),
        pytest.param(a_future_is_waited_for_in_cpp, marks=[on_linux, since_213]),
    ],
    ids=lambda answer: answer.__name__,
)
def test_a_wait_in_cpp_is_named_with_its_collective_and_both_ranks(answer):
    outcome = play(answer, 2, allowed=None, seconds=30.0)
    line = line_in(answer, "# here")
    assert outcome.failure is not None
    assert outcome.failure.diagnosis == "deadlock", outcome.failure
    assert outcome.failure.rank == 1
    assert outcome.failure.site.line == line
    assert f"rank 1 waits in all_reduce at line {line}" in outcome.failure.message
    assert (
        "for rank 0; but rank 0 has already returned and will never call it"
        in outcome.failure.message
    )
    assert outcome.seconds < AT_ONCE


# Right programs. ------------------------------------------------------------------


def training(ddp, late):
    for step in range(3):
        if step == 1 and dist.get_rank() == 0:
            late()
        ddp(data()).sum().backward()
    return ddp.module[1].weight.grad.tolist()


def sleeps():
    time.sleep(0.6)


def computes():
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        torch.ones(64).sum()


def a_peer_sleeps():
    return training(hooked(), sleeps)


def a_peer_computes():
    return training(hooked(), computes)


def a_peer_of_the_builtin_hook_sleeps():
    ddp = DistributedDataParallel(layers())
    ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    return training(ddp, sleeps)


def all_ranks_join():
    ddp = hooked()
    with Join([ddp]):
        for _ in range(2 + dist.get_rank()):
            ddp(data()).sum().backward()
    return ddp.module[1].weight.grad.dtype == torch.float32


def a_future_is_waited_for_in_cpp_and_the_peer_sleeps():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        sleeps()
    torch._C.Future.wait(dist.all_reduce(x, async_op=True).get_future())
    return x.item()


def a_rank_waits_for_a_process_meanwhile():
    x = torch.ones(1)
    work = dist.all_reduce(x, async_op=True)
    if dist.get_rank() == 0:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.4)"], check=True)
        dist.barrier()
    else:
        sleeps()
        dist.barrier()
    work.wait()
    return x.item()


def a_rank_waits_for_a_sleeping_thread_meanwhile():
    x = torch.ones(1)
    work = dist.all_reduce(x, async_op=True) if dist.get_rank() == 1 else None
    thread = threading.Thread(target=sleeps)
    thread.start()
    thread.join()
    work = work or dist.all_reduce(x, async_op=True)
    work.wait()
    return x.item()


RIGHT = [
    a_peer_sleeps,
    a_peer_computes,
    a_peer_of_the_builtin_hook_sleeps,
    all_ranks_join,
    a_future_is_waited_for_in_cpp_and_the_peer_sleeps,
    a_rank_waits_for_a_process_meanwhile,
    a_rank_waits_for_a_sleeping_thread_meanwhile,
]


@pytest.mark.parametrize("answer", RIGHT, ids=lambda answer: answer.__name__)
def test_a_right_program_that_waits_in_cpp_is_accepted(answer):
    outcome = play(answer, 2, allowed=None, seconds=30.0)
    assert outcome.failure is None, outcome.failure
    first, second = (result.value for result in outcome.results)
    assert first == second
    assert first in (True, 2.0) or len(first) == 1


def test_join_gives_the_gradients_that_it_gives_without_the_grader():
    def answer():
        ddp = DistributedDataParallel(layers())
        rank = dist.get_rank()
        with Join([ddp]):
            for step in range(1 + rank):
                ddp.zero_grad()
                (ddp(data()).sum() * (1 + rank + step)).backward()
        return ddp.module[1].bias.grad.tolist()

    outcome = play(answer, 2, allowed=None, seconds=30.0)
    assert outcome.failure is None, outcome.failure
    # the first step is the mean of 2·1 and 2·2, in the second rank 1 is alone: 2·3, by 2 ranks
    assert [result.value for result in outcome.results][1] == [3.0]


# What torch itself begins and drops. ----------------------------------------------


def begun(matcher, rank, kind="all_reduce", *, number=0, by_torch=True):
    what = (number, kind, ANY, 0, WORLD, 1, 4, "float32", "", False, True, "f.py", 3, 1)
    matcher.take(rank, Posted(*what, by_torch=by_torch))


@pytest.mark.parametrize("by_torch", [False, True])
def test_what_torch_drops_is_not_the_callers_fault(by_torch):
    matcher = MessageMatcher(2)
    for rank in (0, 1):
        begun(matcher, rank, by_torch=by_torch)
    for rank in (0, 1):
        matcher.end(rank)
    failure = RootCause(matcher).leftover()
    if by_torch:
        assert failure is None
    else:
        assert failure.diagnosis == "unwaited_request"
        assert failure.message == "rank 0 starts an all_reduce at line 3 and never waits for it"


def test_what_torch_begins_on_one_rank_alone_is_a_disagreement():
    matcher = MessageMatcher(2)
    begun(matcher, 1)
    for rank in (0, 1):
        matcher.end(rank)
    failure = RootCause(matcher).leftover()
    assert (failure.diagnosis, failure.rank) == ("order_mismatch", 1)
    assert failure.message == (
        "rank 1 calls all_reduce at line 3, inside torch, and rank 0 never does: its function has"
        " returned"
    )


def test_a_request_that_the_program_drops_is_still_its_fault():
    def answer():
        dist.all_reduce(torch.ones(1), async_op=True)  # here

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis == "unwaited_request"
    line = line_in(answer, "# here")
    assert failure.message == f"rank 0 starts an all_reduce at line {line} and never waits for it"


def test_a_time_limit_names_a_collective_that_can_never_be_complete():
    matcher = MessageMatcher(3)
    begun(matcher, 1, by_torch=False)
    for rank in (0, 2):
        matcher.end(rank)
    causes = RootCause(matcher)
    causes.timed_out(causes.whereabouts([1], {1: None}), "10 s")
    assert causes.first().message == "no end after 10 s: rank 1 is still running"
    assert causes.first().detail == (
        "rank 1 calls all_reduce at line 3 and ranks 0 and 2 never do: their functions have"
        " returned",
    )


# Futures. -------------------------------------------------------------------------


def test_callbacks_of_a_future_run_without_the_recorder_s_lock():
    """A thread that settles the request meanwhile needs the lock; both once waited forever."""
    recorder = Recorder(0, lambda *_: None)
    free = []

    def settles_elsewhere(_):
        thread = threading.Thread(target=recorder.post, args=("barrier", WORLD))
        thread.start()
        thread.join(5)
        free.append(not thread.is_alive())

    class Transport:
        def get_future(self):
            future = torch.futures.Future()
            future.set_result([])
            future.add_done_callback(settles_elsewhere)
            return future

    gate = Gated(Transport)
    op = recorder.post("all_reduce", WORLD, deferred=gate)
    Request(recorder, op, gate).get_future()
    recorder.resolve(op, ANY)
    assert free == [True]


def collective(emit, inner):
    """A request of a collective that works on a copy of ``x``."""
    recorder, x = Recorder(0, emit), torch.ones(1)
    op = recorder.post("all_reduce", WORLD, reads=[x], writes=[x])
    private = PrivateBuffers(([x],), [x])

    def verify():
        if private.changed():
            recorder.raced(op)

    return x, Request(recorder, op, inner, verify=verify, finish=private.deliver, private=private)


def test_a_buffer_that_has_been_waited_for_may_change_before_a_callback_runs():
    transport, events = torch.futures.Future(), []

    class Transport:
        def wait(self):
            pass

        def get_future(self):
            return transport

    x, request = collective(lambda event, _: events.append(event), Transport())
    future = request.get_future()
    request.wait()
    transport.set_result([x])
    x.fill_(5)
    future.wait()
    assert [event for event in events if isinstance(event, Violated)] == []


def test_a_buffer_is_not_checked_while_a_callback_writes_to_it():
    checking, go_on, order = threading.Event(), threading.Event(), []

    def verify():
        checking.set()
        assert go_on.wait(20)
        order.append("checked")

    transport = torch.futures.Future()

    class Transport:
        def wait(self):
            pass

        def get_future(self):
            return transport

    recorder = Recorder(0, lambda *_: None)
    op = recorder.post("all_reduce", WORLD)
    request = Request(
        recorder, op, Transport(), verify=verify, finish=lambda: order.append("written")
    )
    request.get_future()
    asks = threading.Thread(target=request.wait)
    asks.start()
    assert checking.wait(20)
    settles = threading.Thread(target=transport.set_result, args=([],))
    settles.start()
    settles.join(0.2)
    go_on.set()
    for thread in (asks, settles):
        thread.join()
    assert order == ["checked", "written"]


def test_several_collectives_as_one_have_a_future():
    def answer():
        rank = dist.get_rank()
        given = [torch.full((1,), rank + 1.0), torch.full((2,), rank + 3.0)]
        into = [torch.zeros(2), torch.zeros(4)]
        work = dist.group.WORLD.allgather_into_tensor_coalesced(into, given)
        work.get_future().wait()
        return [tensor.tolist() for tensor in into]

    outcome = play(answer, 2, allowed=None)
    assert outcome.failure is None, outcome.failure
    gathered = [[1.0, 2.0], [3.0, 3.0, 4.0, 4.0]]
    assert [result.value for result in outcome.results] == 2 * [gathered]


# Native threads. ------------------------------------------------------------------


@on_linux
def test_a_thread_that_another_must_wake_up_sleeps_and_one_with_a_time_limit_does_not():
    program = """
import os, sys, threading, _thread, time
from headcount.rank.threads import sleeping
lock = _thread.allocate_lock()
lock.acquire()

def settled(wanted):
    until = time.monotonic() + 20
    while (found := sleeping()) is None if wanted else sleeping() is not None:
        assert time.monotonic() < until, (found, wanted)
    return True

thread = threading.Thread(target=lock.acquire)
thread.start()
print(settled(True), sleeping() == sleeping())
other = threading.Thread(target=lock.acquire, args=(True, 60), daemon=True)
other.start()
print(settled(False))
os._exit(0) if not sys.stdout.flush() else None
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["True", "True", "True"], done


def test_nothing_is_claimed_where_the_kernel_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr(threads, "TASKS", str(tmp_path / "no such folder"))
    assert threads.sleeping() is None


def test_a_rank_that_waits_in_cpp_for_a_call_that_may_come_is_no_deadlock():
    matcher = MessageMatcher(2)
    begun(matcher, 1, by_torch=False)
    matcher.take(1, Inspected(False, [(0, "f.py", 4)], [[0]]))
    assert stuck(matcher, certain=True) == []
    matcher.end(0)
    assert stuck(matcher, certain=True) == [1]
