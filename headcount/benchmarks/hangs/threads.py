"""Ranks of several threads, which wait for other ranks and for each other."""

from __future__ import annotations

import queue
import threading
import time

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def thread_that_never_sends():
    rank, x = dist.get_rank(), torch.zeros(1)

    def serve():
        if rank > 1:
            dist.send(torch.tensor([float(rank)]), 1 - rank)

    server = threading.Thread(target=serve)
    server.start()
    dist.recv(x, 1 - rank)  # ← here
    server.join()
    return x.tolist()


@right(thread_that_never_sends, gives=[[1.0], [0.0]])
def thread_that_sends_later():
    rank, x = dist.get_rank(), torch.zeros(1)

    def serve():
        time.sleep(0.05)
        dist.send(torch.tensor([float(rank)]), 1 - rank)

    server = threading.Thread(target=serve)
    server.start()
    dist.recv(x, 1 - rank)
    server.join()
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def joins_a_thread_that_waits_for_a_message():
    rank, x = dist.get_rank(), torch.zeros(1)
    receiver = threading.Thread(target=dist.recv, args=(x, 1 - rank))
    receiver.start()  # ← here
    receiver.join()  # ← here
    dist.send(torch.tensor([float(rank)]), 1 - rank)
    return x.tolist()


@right(joins_a_thread_that_waits_for_a_message, gives=[[1.0], [0.0]])
def sends_before_it_joins_the_receiver():
    rank, x = dist.get_rank(), torch.zeros(1)
    receiver = threading.Thread(target=dist.recv, args=(x, 1 - rank))
    receiver.start()
    dist.send(torch.tensor([float(rank)]), 1 - rank)
    receiver.join()
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def both_threads_receive():
    rank, x, y = dist.get_rank(), torch.zeros(1), torch.zeros(1)

    def exchange():
        dist.recv(y, 1 - rank, tag=1)  # ← here
        dist.send(torch.tensor([float(rank)]), 1 - rank, tag=2)

    helper = threading.Thread(target=exchange)
    helper.start()
    dist.recv(x, 1 - rank, tag=2)  # ← here
    dist.send(torch.tensor([10.0 + rank]), 1 - rank, tag=1)
    helper.join()
    return [x.item(), y.item()]


@right(both_threads_receive, gives=[[1.0, 11.0], [0.0, 10.0]])
def one_thread_receives_and_one_sends():
    rank, x, y = dist.get_rank(), torch.zeros(1), torch.zeros(1)

    def exchange():
        dist.recv(y, 1 - rank, tag=1)
        dist.send(torch.tensor([float(rank)]), 1 - rank, tag=2)

    helper = threading.Thread(target=exchange)
    helper.start()
    dist.send(torch.tensor([10.0 + rank]), 1 - rank, tag=1)
    dist.recv(x, 1 - rank, tag=2)
    helper.join()
    return [x.item(), y.item()]


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def receives_while_it_holds_the_lock():
    rank, x, lock = dist.get_rank(), torch.zeros(1), threading.Lock()
    held = threading.Event()

    def receive():
        with lock:
            held.set()
            dist.recv(x, 1 - rank)  # ← here

    receiver = threading.Thread(target=receive)
    receiver.start()
    held.wait()
    with lock:  # ← here
        dist.send(torch.tensor([float(rank)]), 1 - rank)
    receiver.join()
    return x.tolist()


@right(receives_while_it_holds_the_lock, gives=[[1.0], [0.0]])
def receives_without_the_lock():
    rank, x, lock = dist.get_rank(), torch.zeros(1), threading.Lock()
    held = threading.Event()

    def receive():
        with lock:
            held.set()
        dist.recv(x, 1 - rank)

    receiver = threading.Thread(target=receive)
    receiver.start()
    held.wait()
    with lock:
        dist.send(torch.tensor([float(rank)]), 1 - rank)
    receiver.join()
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def waits_for_a_result_that_its_thread_cannot_have():
    rank, results = dist.get_rank(), queue.Queue()

    def receive():
        x = torch.zeros(1)
        dist.recv(x, 1 - rank)  # ← here
        results.put(x.item())

    threading.Thread(target=receive, daemon=True).start()
    found = results.get()  # ← here
    dist.send(torch.tensor([float(rank)]), 1 - rank)
    return found


@right(waits_for_a_result_that_its_thread_cannot_have, gives=[1.0, 0.0])
def waits_for_a_result_that_its_thread_will_have():
    rank, results = dist.get_rank(), queue.Queue()

    def receive():
        x = torch.zeros(1)
        dist.recv(x, 1 - rank)
        results.put(x.item())

    threading.Thread(target=receive, daemon=True).start()
    dist.send(torch.tensor([float(rank)]), 1 - rank)
    return results.get()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def collectives_of_two_threads_in_another_order():
    rank, x, y = dist.get_rank(), torch.ones(1), torch.ones(1)
    helper = threading.Thread(target=lambda: dist.all_reduce(y))  # ← here
    if rank == 0:
        helper.start()
        helper.join()
        dist.broadcast(x, 0)  # ← here
    else:
        dist.broadcast(x, 0)  # ← here
        helper.start()
        helper.join()
    return y.tolist()


@right(collectives_of_two_threads_in_another_order, gives=2 * [[2.0]])
def collectives_of_two_threads_in_the_same_order():
    rank, x, y = dist.get_rank(), torch.ones(1), torch.ones(1)
    helper = threading.Thread(target=lambda: dist.all_reduce(y))
    if rank == 0:
        helper.start()
        helper.join()
        dist.broadcast(x, 0)
    else:
        helper.start()
        helper.join()
        dist.broadcast(x, 0)
    return y.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def thread_dies_before_it_sends():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])

    def send():
        if rank == 2:
            return
        dist.send(x, 0)

    if rank > 0:
        sender = threading.Thread(target=send)
        sender.start()
        sender.join()
        return None
    total = 0.0
    for peer in (1, 2):
        dist.recv(x, peer)  # ← here
        total += x.item()
    return total


@right(thread_dies_before_it_sends, gives=[3.0, None, None])
def every_thread_sends():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])

    def send():
        dist.send(x, 0)

    if rank > 0:
        sender = threading.Thread(target=send)
        sender.start()
        sender.join()
        return None
    total = 0.0
    for peer in (1, 2):
        dist.recv(x, peer)
        total += x.item()
    return total


@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def two_threads_receive_into_one_buffer():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        ready = torch.zeros(1)
        first = dist.irecv(x, 1)
        second = threading.Thread(target=dist.recv, args=(x, 2))
        second.start()  # ← here
        second.join()
        dist.send(ready, 1)
        first.wait()
    elif rank == 1:
        ready = torch.zeros(1)
        dist.recv(ready, 0)
        dist.send(x, 0)
    else:
        dist.send(x, 0)
    return None


@right(two_threads_receive_into_one_buffer, gives=3 * [None])
def two_threads_receive_into_two_buffers():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        ready, y = torch.zeros(1), torch.zeros(1)
        first = dist.irecv(x, 1)
        second = threading.Thread(target=dist.recv, args=(y, 2))
        second.start()
        second.join()
        dist.send(ready, 1)
        first.wait()
    elif rank == 1:
        ready = torch.zeros(1)
        dist.recv(ready, 0)
        dist.send(x, 0)
    else:
        dist.send(x, 0)
    return None
