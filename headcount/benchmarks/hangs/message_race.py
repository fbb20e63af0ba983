"""Receives from any rank that are right only if messages come in one order."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="sometimes")
def any_rank_before_a_named_one():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        total = 0.0
        dist.recv(x)  # ← here
        total += x.item()
        dist.recv(x, 1)  # ← here
        return total + x.item()
    dist.send(x, 0)
    return 0.0


@right(any_rank_before_a_named_one, gives=[3.0, 0.0, 0.0])
def a_named_rank_before_any():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        total = 0.0
        dist.recv(x, 1)
        total += x.item()
        dist.recv(x)
        return total + x.item()
    dist.send(x, 0)
    return 0.0


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="sometimes")
def a_named_rank_between_two_of_any():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        dist.recv(x)  # ← here
        dist.recv(x, 2)  # ← here
        dist.recv(x)
        return None
    dist.send(x, 0)
    return None


@right(a_named_rank_between_two_of_any, gives=4 * [None])
def a_named_rank_on_a_tag_of_its_own():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        dist.recv(x)
        dist.recv(x, 2, tag=2)
        dist.recv(x)
        return None
    if rank == 2:
        dist.send(x, 0, tag=2)
        return None
    dist.send(x, 0)
    return None


@wrong(Diagnosis.SIZE_MISMATCH, ranks=3, hangs="sometimes")
def two_sizes_from_any_rank():
    rank = dist.get_rank()
    if rank == 0:
        short, long = torch.empty(2), torch.empty(4)
        dist.recv(short)  # ← here
        dist.recv(long)
        return short.sum().item() + long.sum().item()
    dist.send(torch.ones(2 * rank), 0)  # ← here
    return 0.0


@right(two_sizes_from_any_rank, gives=[6.0, 0.0, 0.0])
def two_sizes_from_named_ranks():
    rank = dist.get_rank()
    if rank == 0:
        short, long = torch.empty(2), torch.empty(4)
        dist.recv(short, 1)
        dist.recv(long, 2)
        return short.sum().item() + long.sum().item()
    dist.send(torch.ones(2 * rank), 0)
    return 0.0


@wrong(Diagnosis.DTYPE_MISMATCH, ranks=3, hangs="never")
def two_types_from_any_rank():
    rank = dist.get_rank()
    if rank == 0:
        count, loss = torch.empty(1, dtype=torch.int64), torch.empty(1, dtype=torch.float64)
        dist.recv(count)  # ← here
        dist.recv(loss)
        return count.item() + loss.item()
    value = torch.tensor([3]) if rank == 1 else torch.tensor([0.5], dtype=torch.float64)
    dist.send(value, 0)  # ← here
    return 0.0


@right(two_types_from_any_rank, gives=[3.5, 0.0, 0.0])
def two_types_on_two_tags():
    rank = dist.get_rank()
    if rank == 0:
        count, loss = torch.empty(1, dtype=torch.int64), torch.empty(1, dtype=torch.float64)
        dist.recv(count, tag=1)
        dist.recv(loss, tag=2)
        return count.item() + loss.item()
    value = torch.tensor([3]) if rank == 1 else torch.tensor([0.5], dtype=torch.float64)
    dist.send(value, 0, tag=rank)
    return 0.0


@wrong(Diagnosis.SIZE_MISMATCH, ranks=3, hangs="sometimes")
def body_from_another_rank_than_its_header():
    rank, total = dist.get_rank(), 0.0
    if rank == 0:
        for _ in range(2):
            length = torch.empty(1, dtype=torch.int64)
            dist.recv(length, tag=1)
            body = torch.empty(int(length))
            dist.recv(body, tag=2)  # ← here
            total += body.sum().item()
        return total
    body = torch.ones(3 * rank)
    requests = [
        dist.isend(torch.tensor([len(body)]), 0, tag=1),
        dist.isend(body, 0, tag=2),
    ]  # ← here
    for request in requests:
        request.wait()
    return total


@right(body_from_another_rank_than_its_header, gives=[9.0, 0.0, 0.0])
def body_from_the_rank_of_its_header():
    rank, total = dist.get_rank(), 0.0
    if rank == 0:
        for _ in range(2):
            length = torch.empty(1, dtype=torch.int64)
            source = dist.recv(length, tag=1)
            body = torch.empty(int(length))
            dist.recv(body, source, tag=2)
            total += body.sum().item()
        return total
    body = torch.ones(3 * rank)
    requests = [dist.isend(torch.tensor([len(body)]), 0, tag=1), dist.isend(body, 0, tag=2)]
    for request in requests:
        request.wait()
    return total


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="sometimes")
def replies_in_the_order_of_ranks():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        for client in (1, 2):
            dist.recv(x)
            dist.send(x * 10, client)  # ← here
        return None
    dist.send(x, 0)  # ← here
    dist.recv(x, 0)
    return x.tolist()


@right(replies_in_the_order_of_ranks, gives=[None, [10.0], [20.0]])
def replies_to_whoever_asked():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        for _ in (1, 2):
            client = dist.recv(x)
            dist.send(x * 10, client)
        return None
    dist.send(x, 0)
    dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="sometimes")
def takes_the_first_message_for_rank_1s():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        results = {}
        for expected in (1, 2):
            source = dist.recv(x)
            assert source == expected  # ← here
            results[expected] = x.item()
        return results[1]
    dist.send(x, 0)
    return None


@right(takes_the_first_message_for_rank_1s, gives=[1.0, None, None])
def files_messages_by_their_source():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        results = {}
        for _ in (1, 2):
            source = dist.recv(x)
            assert source in (1, 2)
            results[source] = x.item()
        return results[1]
    dist.send(x, 0)
    return None


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="sometimes")
def first_message_says_how_many_follow():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        dist.recv(x)  # ← here
        for _ in range(int(x)):
            dist.recv(x)  # ← here
        return None
    dist.send(x, 0)
    return None


@right(first_message_says_how_many_follow, gives=3 * [None])
def rank_1_says_how_many_follow():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        dist.recv(x, 1)
        for _ in range(int(x)):
            dist.recv(x)
        return None
    dist.send(x, 0)
    return None


@wrong(Diagnosis.SIZE_MISMATCH, ranks=3, hangs="sometimes")
def two_started_receives_of_two_sizes():
    rank = dist.get_rank()
    if rank == 0:
        short, long = torch.empty(1), torch.empty(2)
        requests = [
            dist.irecv(short),  # ← here
            dist.irecv(long),  # ← here
        ]
        for request in requests:
            request.wait()
        return short.sum().item() + long.sum().item()
    dist.send(torch.ones(rank), 0)  # ← here
    return 0.0


@right(two_started_receives_of_two_sizes, gives=[3.0, 0.0, 0.0])
def two_started_receives_of_one_size():
    rank = dist.get_rank()
    if rank == 0:
        first, second = torch.zeros(2), torch.zeros(2)
        requests = [
            dist.irecv(first),
            dist.irecv(second),
        ]
        for request in requests:
            request.wait()
        return first.sum().item() + second.sum().item()
    x = torch.zeros(2)
    x[:rank] = 1
    dist.send(x, 0)
    return 0.0
