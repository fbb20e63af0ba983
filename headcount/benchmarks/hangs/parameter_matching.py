"""Ranks make the same call, and disagree on its root, size, type, reduction or tag."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="always")
def every_rank_broadcasts_from_itself():
    x = torch.full((2,), float(dist.get_rank()))
    dist.broadcast(x, src=dist.get_rank())  # ← here
    return x.tolist()


@right(every_rank_broadcasts_from_itself, gives=3 * [[2.0, 2.0]])
def every_rank_broadcasts_from_the_last():
    x = torch.full((2,), float(dist.get_rank()))
    dist.broadcast(x, src=dist.get_world_size() - 1)
    return x.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="always")
def ranks_reduce_to_their_right_neighbour():
    x = torch.ones(2)
    root = min(dist.get_rank() + 1, 2)
    dist.reduce(x, dst=root)  # ← here
    return x.tolist() if dist.get_rank() == root else None


@right(ranks_reduce_to_their_right_neighbour, gives=[None, None, [3.0, 3.0]])
def ranks_reduce_to_the_last():
    x = torch.ones(2)
    root = max(dist.get_rank(), 2)
    dist.reduce(x, dst=root)
    return x.tolist() if dist.get_rank() == root else None


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def both_ranks_gather_at_home():
    rank = dist.get_rank()
    parts = [torch.empty(1), torch.empty(1)]
    dist.gather(torch.tensor([float(rank)]), parts, dst=rank)  # ← here
    return torch.cat(parts).tolist()


@right(both_ranks_gather_at_home, gives=[[0.0, 1.0], None])
def both_ranks_gather_on_rank_0():
    rank = dist.get_rank()
    parts = [torch.empty(1), torch.empty(1)] if rank == 0 else None
    dist.gather(torch.tensor([float(rank)]), parts, dst=0)
    return torch.cat(parts).tolist() if rank == 0 else None


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def both_ranks_scatter_their_own():
    rank, x = dist.get_rank(), torch.empty(1)
    parts = [torch.tensor([10.0 * rank]), torch.tensor([10.0 * rank + 1])]
    dist.scatter(x, parts, src=rank)  # ← here
    return x.tolist()


@right(both_ranks_scatter_their_own, gives=[[10.0], [11.0]])
def both_ranks_take_from_rank_1():
    rank, x = dist.get_rank(), torch.empty(1)
    parts = [torch.tensor([10.0 * rank]), torch.tensor([10.0 * rank + 1])]
    dist.scatter(x, parts if rank == 1 else None, src=1)
    return x.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="never")
def one_rank_takes_the_maximum_and_the_others_the_sum():
    x = torch.tensor([1.0 + dist.get_rank()])
    op = dist.ReduceOp.MAX if dist.get_rank() == 1 else dist.ReduceOp.SUM
    dist.all_reduce(x, op)  # ← here
    return x.tolist()


@right(one_rank_takes_the_maximum_and_the_others_the_sum, gives=3 * [[3.0]])
def all_ranks_take_the_maximum():
    x = torch.tensor([1.0 + dist.get_rank()])
    op = dist.ReduceOp.MAX if dist.get_rank() < 3 else dist.ReduceOp.SUM
    dist.all_reduce(x, op)
    return x.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="never")
def reduce_scatter_with_two_reductions():
    parts = [torch.ones(2), torch.full((2,), 3.0)]
    mine = torch.empty(2)
    op = dist.ReduceOp.SUM if dist.get_rank() == 0 else dist.ReduceOp.PRODUCT
    dist.reduce_scatter(mine, parts, op)  # ← here
    return mine.tolist()


@right(reduce_scatter_with_two_reductions, gives=[[2.0, 2.0], [6.0, 6.0]])
def reduce_scatter_with_one_reduction():
    parts = [torch.ones(2), torch.full((2,), 3.0)]
    mine = torch.empty(2)
    op = dist.ReduceOp.SUM
    dist.reduce_scatter(mine, parts, op)
    return mine.tolist()


@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="never")
def all_reduce_of_as_many_elements_as_each_has():
    x = torch.ones(4 + dist.get_rank())
    dist.all_reduce(x)  # ← here
    return x.sum().item()


@right(all_reduce_of_as_many_elements_as_each_has, gives=[10.0, 10.0])
def all_reduce_of_padded_elements():
    x = torch.nn.functional.pad(torch.ones(4 + dist.get_rank()), (0, 1 - dist.get_rank()))
    x[4] = 1
    dist.all_reduce(x)
    return x.sum().item()


@wrong(Diagnosis.DTYPE_MISMATCH, ranks=2, hangs="never")
def all_reduce_of_two_precisions():
    dtype = torch.float32 if dist.get_rank() == 0 else torch.bfloat16
    x = torch.ones(4, dtype=dtype)
    dist.all_reduce(x)  # ← here
    return x.tolist()


@right(all_reduce_of_two_precisions, gives=2 * [[2.0, 2.0, 2.0, 2.0]])
def all_reduce_of_one_precision():
    dtype = torch.float32 if dist.get_rank() == 0 else torch.bfloat16
    x = torch.ones(4, dtype=dtype).float()
    dist.all_reduce(x)
    return x.tolist()


@wrong(Diagnosis.DTYPE_MISMATCH, ranks=3, hangs="never")
def broadcast_of_floats_into_integers():
    x = torch.ones(2) if dist.get_rank() == 0 else torch.zeros(2, dtype=torch.int32)
    dist.broadcast(x, 0)  # ← here
    return x.tolist()


@right(broadcast_of_floats_into_integers, gives=3 * [[1, 1]])
def broadcast_of_integers_into_integers():
    x = torch.ones(2).int() if dist.get_rank() == 0 else torch.zeros(2, dtype=torch.int32)
    dist.broadcast(x, 0)
    return x.tolist()


@wrong(Diagnosis.SIZE_MISMATCH, ranks=3, hangs="never")
def all_gather_of_uneven_shards():
    n, rank = dist.get_world_size(), dist.get_rank()
    shard = torch.ones(2 + (rank == 0))
    parts = [torch.empty_like(shard) for _ in range(n)]
    dist.all_gather(parts, shard)  # ← here
    return sum(part.sum().item() for part in parts)


@right(all_gather_of_uneven_shards, gives=3 * [7.0])
def all_gather_of_padded_shards():
    n, rank = dist.get_world_size(), dist.get_rank()
    shard = torch.zeros(3)
    shard[: 2 + (rank == 0)] = 1
    parts = [torch.empty_like(shard) for _ in range(n)]
    dist.all_gather(parts, shard)
    return sum(part.sum().item() for part in parts)


@wrong(Diagnosis.DTYPE_MISMATCH, ranks=2, hangs="never")
def all_gather_of_counts_and_of_losses():
    x = torch.tensor([7]) if dist.get_rank() == 0 else torch.tensor([7.0], dtype=torch.float64)
    parts = [torch.empty_like(x), torch.empty_like(x)]
    dist.all_gather(parts, x)  # ← here
    return torch.cat(parts).tolist()


@right(all_gather_of_counts_and_of_losses, gives=2 * [[7.0, 7.0]])
def all_gather_of_losses():
    x = torch.tensor([7]) if dist.get_rank() == 0 else torch.tensor([7.0], dtype=torch.float64)
    x = x.double()
    parts = [torch.empty_like(x), torch.empty_like(x)]
    dist.all_gather(parts, x)
    return torch.cat(parts).tolist()


@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="never")
def all_to_all_with_splits_that_do_not_meet():
    rank = dist.get_rank()
    given = torch.full((4,), float(rank))
    sent = [1, 3] if rank == 0 else [2, 2]
    taken = [1, 3] if rank == 0 else [2, 2]
    found = torch.empty(sum(taken))
    dist.all_to_all_single(found, given, taken, sent)  # ← here
    return found.tolist()


@right(all_to_all_with_splits_that_do_not_meet, gives=[[0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]])
def all_to_all_with_splits_that_meet():
    rank = dist.get_rank()
    given = torch.full((4,), float(rank))
    sent = [1, 3] if rank == 0 else [2, 2]
    taken = [1, 2] if rank == 0 else [3, 2]
    found = torch.empty(sum(taken))
    dist.all_to_all_single(found, given, taken, sent)
    return found.tolist()


@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="never")
def reduce_scatter_of_two_lengths():
    length = 2 + dist.get_rank()
    mine = torch.empty(length)
    dist.reduce_scatter_tensor(mine, torch.ones(2 * length))  # ← here
    return mine.tolist()


@right(reduce_scatter_of_two_lengths, gives=2 * [[2.0, 2.0]])
def reduce_scatter_of_one_length():
    length = 2
    mine = torch.empty(length)
    dist.reduce_scatter_tensor(mine, torch.ones(2 * length))
    return mine.tolist()


@wrong(Diagnosis.SIZE_MISMATCH, ranks=3, hangs="never")
def scatters_more_than_others_have_room_for():
    rank = dist.get_rank()
    mine = torch.empty(4 if rank == 0 else 3)
    parts = [torch.full((4,), float(r)) for r in range(3)] if rank == 0 else None
    dist.scatter(mine, parts, 0)  # ← here
    return mine.tolist()


@right(scatters_more_than_others_have_room_for, gives=[3 * [0.0], 3 * [1.0], 3 * [2.0]])
def scatters_what_others_have_room_for():
    rank = dist.get_rank()
    mine = torch.empty(3)
    parts = [torch.full((3,), float(r)) for r in range(3)] if rank == 0 else None
    dist.scatter(mine, parts, 0)
    return mine.tolist()


@wrong(Diagnosis.DTYPE_MISMATCH, ranks=2, hangs="never")
def gathers_integers_among_floats():
    rank = dist.get_rank()
    x = torch.tensor([2.0]) if rank == 0 else torch.tensor([2], dtype=torch.int32)
    parts = [torch.empty(1), torch.empty(1)] if rank == 0 else None
    dist.gather(x, parts, dst=0)  # ← here
    return torch.cat(parts).tolist() if rank == 0 else None


@right(gathers_integers_among_floats, gives=[[2.0, 2.0], None])
def gathers_floats_among_floats():
    rank = dist.get_rank()
    x = torch.tensor([2.0]) if rank == 0 else torch.tensor([2], dtype=torch.int32)
    parts = [torch.empty(1), torch.empty(1)] if rank == 0 else None
    dist.gather(x.float(), parts, dst=0)
    return torch.cat(parts).tolist() if rank == 0 else None


@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="never")
def receives_less_than_is_sent():
    x = torch.arange(4.0) if dist.get_rank() == 0 else torch.zeros(3)
    if dist.get_rank() == 0:
        dist.send(x, 1)  # ← here
    else:
        dist.recv(x, 0)  # ← here
    return x.tolist()


@right(receives_less_than_is_sent, gives=2 * [[0.0, 1.0, 2.0]])
def receives_the_part_that_is_sent():
    x = torch.arange(4.0)[:3] if dist.get_rank() == 0 else torch.zeros(3)
    if dist.get_rank() == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="never")
def receives_more_than_is_sent():
    x = torch.arange(4.0) if dist.get_rank() == 0 else torch.zeros(5)
    if dist.get_rank() == 0:
        dist.send(x, 1)  # ← here
    else:
        dist.recv(x, 0)  # ← here
    return x[:4].tolist()


@right(receives_more_than_is_sent, gives=2 * [[0.0, 1.0, 2.0, 3.0]])
def receives_into_a_part():
    x = torch.arange(4.0) if dist.get_rank() == 0 else torch.zeros(5)
    if dist.get_rank() == 0:
        dist.send(x, 1)
    else:
        dist.recv(x[:4], 0)
    return x[:4].tolist()


@wrong(Diagnosis.DTYPE_MISMATCH, ranks=2, hangs="never")
def receives_integers_as_floats():
    x = torch.arange(4) if dist.get_rank() == 0 else torch.zeros(4, dtype=torch.float64)
    if dist.get_rank() == 0:
        dist.send(x, 1)  # ← here
    else:
        dist.recv(x, 0)  # ← here
    return x.tolist()


@right(receives_integers_as_floats, gives=2 * [[0.0, 1.0, 2.0, 3.0]])
def receives_floats_as_floats():
    x = torch.arange(4).double() if dist.get_rank() == 0 else torch.zeros(4, dtype=torch.float64)
    if dist.get_rank() == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def receives_with_another_tag():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=1)  # ← here
    else:
        dist.recv(x, 0, tag=2)  # ← here
    return x.tolist()


@right(receives_with_another_tag, gives=2 * [[0.0, 0.0]])
def receives_with_the_same_tag():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=2)
    else:
        dist.recv(x, 0, tag=2)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def receives_tags_in_another_order():
    header, body = torch.ones(1), torch.ones(3)
    if dist.get_rank() == 0:
        dist.send(header, 1, tag=1)  # ← here
        dist.send(body, 1, tag=2)
    else:
        dist.recv(body, 0, tag=2)  # ← here
        dist.recv(header, 0, tag=1)
    return body.tolist()


@right(receives_tags_in_another_order, gives=2 * [[1.0, 1.0, 1.0]])
def receives_tags_in_another_order_than_isend_started_them():
    header, body = torch.ones(1), torch.ones(3)
    if dist.get_rank() == 0:
        started = [dist.isend(header, 1, tag=1), dist.isend(body, 1, tag=2)]
        for request in started:
            request.wait()
    else:
        dist.recv(body, 0, tag=2)
        dist.recv(header, 0, tag=1)
    return body.tolist()
