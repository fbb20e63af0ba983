"""Futures of collectives: of absent ranks, of buffers in use, and forgotten ones."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def future_of_an_absent_rank():
    x = torch.ones(2)
    if dist.get_rank() == 0:
        future = dist.all_reduce(x, async_op=True).get_future()
        future.wait()  # ← here
    return None


@right(future_of_an_absent_rank, gives=2 * [None])
def future_of_all_ranks():
    x = torch.ones(2)
    if dist.get_rank() < 2:
        future = dist.all_reduce(x, async_op=True).get_future()
        future.wait()
    return None


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def writes_before_the_future_is_complete():
    x = torch.ones(2)
    future = dist.all_reduce(x, async_op=True).get_future()
    x.zero_()  # ← here
    future.wait()  # ← here
    return x.tolist()


@right(writes_before_the_future_is_complete, gives=2 * [[0.0, 0.0]])
def writes_after_the_future_is_complete():
    x = torch.ones(2)
    future = dist.all_reduce(x, async_op=True).get_future()
    future.wait()
    x.zero_()
    return x.tolist()


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def future_that_is_never_waited_for():
    x = torch.ones(2)
    dist.all_reduce(x, async_op=True).get_future()  # ← here
    return None


@right(future_that_is_never_waited_for, gives=2 * [None])
def future_that_is_waited_for():
    x = torch.ones(2)
    dist.all_reduce(x, async_op=True).get_future().wait()
    return None


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def waits_for_all_futures_but_one_rank_has_fewer():
    futures = []
    for i in range(2):
        if i == 0 or dist.get_rank() != 1:
            work = dist.all_reduce(torch.ones(1), async_op=True)
            futures.append(work.get_future())
    torch.futures.wait_all(futures)  # ← here
    return None


@right(waits_for_all_futures_but_one_rank_has_fewer, gives=3 * [None])
def waits_for_all_futures_of_as_many_collectives():
    futures = []
    for i in range(2):
        if i == 0 or dist.get_rank() != 3:
            work = dist.all_reduce(torch.ones(1), async_op=True)
            futures.append(work.get_future())
    torch.futures.wait_all(futures)
    return None


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def chained_future_of_an_absent_rank():
    x = torch.ones(2)
    if dist.get_rank() == 0:
        future = dist.all_reduce(x, async_op=True).get_future()
        mean = future.then(lambda done: done.value()[0] / 2)
        return mean.wait().tolist()  # ← here
    return None


@right(chained_future_of_an_absent_rank, gives=2 * [[1.0, 1.0]])
def chained_future_of_all_ranks():
    x = torch.ones(2)
    if dist.get_rank() < 2:
        future = dist.all_reduce(x, async_op=True).get_future()
        mean = future.then(lambda done: done.value()[0] / 2)
        return mean.wait().tolist()
    return None


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def callback_that_raises():
    x = torch.ones(2)
    future = dist.all_reduce(x, async_op=True).get_future()
    mean = future.then(lambda done: done.value()[1] / 2)  # ← here
    return mean.wait().tolist()


@right(callback_that_raises, gives=2 * [[1.0, 1.0]])
def callback_that_does_not_raise():
    x = torch.ones(2)
    future = dist.all_reduce(x, async_op=True).get_future()
    mean = future.then(lambda done: done.value()[0] / 2)
    return mean.wait().tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="sometimes")
def futures_of_different_collectives():
    x, y = torch.ones(2), torch.ones(2)
    if dist.get_rank() == 0:
        first = dist.all_reduce(x, async_op=True).get_future()  # ← here
        second = dist.broadcast(y, 0, async_op=True).get_future()
    else:
        second = dist.broadcast(y, 0, async_op=True).get_future()  # ← here
        first = dist.all_reduce(x, async_op=True).get_future()
    torch.futures.wait_all([first, second])
    return x.tolist()


@right(futures_of_different_collectives, gives=2 * [[2.0, 2.0]])
def futures_of_the_same_collectives():
    x, y = torch.ones(2), torch.ones(2)
    if dist.get_rank() == 0:
        first = dist.all_reduce(x, async_op=True).get_future()
        second = dist.broadcast(y, 0, async_op=True).get_future()
    else:
        first = dist.all_reduce(x, async_op=True).get_future()
        second = dist.broadcast(y, 0, async_op=True).get_future()
    torch.futures.wait_all([second, first])
    return x.tolist()
