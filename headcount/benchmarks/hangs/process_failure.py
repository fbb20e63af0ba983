"""Ranks that raise, leave or are killed while others count on them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.EXCEPTION, ranks=4, hangs="never")
def one_rank_raises():
    x = torch.ones(1)
    if dist.get_rank() == 2:
        raise ValueError("no batch left")  # ← here
    dist.all_reduce(x)
    return x.tolist()


@right(one_rank_raises, gives=4 * [[4.0]])
def one_rank_raises_and_recovers():
    x = torch.ones(1)
    try:
        if dist.get_rank() == 2:
            raise ValueError("no batch left")
    except ValueError:
        x = torch.ones(1)
    dist.all_reduce(x)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="never")
def index_out_of_range_on_the_last_rank():
    shards = [torch.ones(1), torch.ones(1)]
    total = shards[dist.get_rank()].clone()  # ← here
    dist.all_reduce(total)
    return total.tolist()


@right(index_out_of_range_on_the_last_rank, gives=3 * [[3.0]])
def index_in_range_on_every_rank():
    shards = [torch.ones(1), torch.ones(1)]
    total = shards[dist.get_rank() % 2].clone()
    dist.all_reduce(total)
    return total.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def assertion_between_two_messages():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(x, 1)
    else:
        dist.recv(x, 0)
        assert x.item() == 1, "expected a one"  # ← here
        dist.send(x, 0)
    return x.tolist()


@right(assertion_between_two_messages, gives=2 * [[0.0]])
def assertion_that_holds():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(x, 1)
    else:
        dist.recv(x, 0)
        assert x.item() == 0, "expected a zero"
        dist.send(x, 0)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def every_rank_raises_inside_a_helper():
    def shard(x):
        return x.view(3, -1)[dist.get_rank()].clone()  # ← here

    x = shard(torch.ones(4))
    dist.all_reduce(x)
    return x.tolist()


@right(every_rank_raises_inside_a_helper, gives=2 * [[2.0, 2.0]])
def every_rank_takes_its_shard():
    def shard(x):
        return x.view(2, -1)[dist.get_rank()].clone()

    x = shard(torch.ones(4))
    dist.all_reduce(x)
    return x.tolist()


@wrong(Diagnosis.EXITED, ranks=3, hangs="never")
def one_rank_calls_sys_exit():
    x = torch.ones(1)
    if dist.get_rank() == 1:
        sys.exit(0)  # ← here
    dist.all_reduce(x)
    return x.tolist()


@right(one_rank_calls_sys_exit, gives=3 * [[3.0]])
def one_thread_calls_sys_exit():
    x = torch.ones(1)
    if dist.get_rank() == 1:
        thread = threading.Thread(target=sys.exit, args=(0,))
        thread.start()
        thread.join()
    dist.all_reduce(x)
    return x.tolist()


@wrong(Diagnosis.EXITED, ranks=2, hangs="never")
def one_rank_leaves_by_os_exit():
    x = torch.ones(1)
    if dist.get_rank() == 1:
        os._exit(0)  # ← here
    dist.recv(x, 1)
    return x.tolist()


@right(one_rank_leaves_by_os_exit, gives=2 * [[1.0]])
def one_rank_sends_instead_of_leaving():
    x = torch.ones(1)
    if dist.get_rank() == 1:
        dist.send(x, 0)
        return x.tolist()
    dist.recv(x, 1)
    return x.tolist()


@wrong(Diagnosis.CRASHED, ranks=3, hangs="never")
def one_rank_is_killed():
    x = torch.ones(1)
    if dist.get_rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)  # ← here
    dist.barrier()
    return x.tolist()


@right(one_rank_is_killed, gives=3 * [[1.0]])
def a_process_that_one_rank_started_is_killed():
    x = torch.ones(1)
    if dist.get_rank() == 2:
        child = subprocess.Popen(["sleep", "60"])
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    dist.barrier()
    return x.tolist()


@wrong(Diagnosis.CRASHED, ranks=2, hangs="never")
def one_rank_aborts():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        os.abort()  # ← here
    dist.all_reduce(x)
    return x.tolist()


@right(one_rank_aborts, gives=2 * [[2.0]])
def no_rank_aborts():
    x = torch.ones(1)
    if dist.get_rank() > 1:
        os.abort()
    dist.all_reduce(x)
    return x.tolist()


@wrong(Diagnosis.CRASHED, ranks=2, hangs="never")
def one_rank_reads_where_there_is_no_memory():
    x = torch.ones(1)
    if dist.get_rank() == 1:
        ctypes.string_at(0)  # ← here
    dist.send(x, 1) if dist.get_rank() == 0 else dist.recv(x, 0)
    return x.tolist()


@right(one_rank_reads_where_there_is_no_memory, gives=2 * [[1.0]])
def one_rank_reads_where_there_is_memory():
    x = torch.ones(1)
    if dist.get_rank() == 1:
        ctypes.string_at(b"here")
    dist.send(x, 1) if dist.get_rank() == 0 else dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def recursion_without_an_end():
    rank, x = dist.get_rank(), torch.zeros(1)

    def depth(size):
        return 1 + depth(size // 2)  # ← here

    if rank == 0:
        x += depth(8)
    dist.broadcast(x, 0)
    return x.tolist()


@right(recursion_without_an_end, gives=[[4.0], [4.0]])
def recursion_with_an_end():
    rank, x = dist.get_rank(), torch.zeros(1)

    def depth(size):
        return 1 + depth(size // 2) if size else 0

    if rank == 0:
        x += depth(8)
    dist.broadcast(x, 0)
    return x.tolist()
