"""Waits that have a time limit."""

from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def limit_on_a_message_that_never_comes():
    x = torch.zeros(1)
    if dist.get_rank() == 0:
        dist.irecv(x, 1).wait(timedelta(milliseconds=50))  # ← here
    return x.tolist()


@right(limit_on_a_message_that_never_comes, gives=2 * [[0.0]])
def limit_on_a_message_that_comes():
    x = torch.zeros(1)
    if dist.get_rank() == 0:
        dist.irecv(x, 1).wait(timedelta(seconds=5))
    else:
        dist.send(x, 0)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def limit_on_a_collective_that_one_rank_misses():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.all_reduce(x, async_op=True).wait(timedelta(milliseconds=50))  # ← here
    return None


@right(limit_on_a_collective_that_one_rank_misses, gives=2 * [None])
def limit_on_a_collective_of_all_ranks():
    x = torch.ones(1)
    if dist.get_rank() < 2:
        dist.all_reduce(x, async_op=True).wait(timedelta(seconds=5))
    return None


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def gives_up_on_a_message_and_then_waits_for_another():
    x, y = torch.zeros(1), torch.zeros(1)
    if dist.get_rank() == 0:
        try:
            dist.irecv(x, 1, tag=1).wait(timedelta(milliseconds=50))
        except RuntimeError:
            dist.recv(y, 1, tag=2)  # ← here
    return x.tolist()


@right(gives_up_on_a_message_and_then_waits_for_another, gives=2 * [[0.0]])
def gives_up_on_a_message_and_goes_on_alone():
    x, y = torch.zeros(1), torch.zeros(1)
    if dist.get_rank() == 0:
        try:
            dist.irecv(x, 1, tag=1).wait(timedelta(milliseconds=50))
        except RuntimeError:
            y += 1
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="never")
def one_limit_does_not_free_the_others():
    rank, x = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        dist.irecv(x, 1).wait()  # ← here
    elif rank == 1:
        try:
            dist.irecv(x, 2).wait(timedelta(milliseconds=50))
        except RuntimeError:
            return "gave up"
    return None


@right(one_limit_does_not_free_the_others, gives=[None, "gave up", None])
def one_limit_ends_and_nobody_else_waits():
    rank, x = dist.get_rank(), torch.zeros(1)
    if rank == 1:
        try:
            dist.irecv(x, 2).wait(timedelta(milliseconds=50))
        except RuntimeError:
            return "gave up"
    return None
