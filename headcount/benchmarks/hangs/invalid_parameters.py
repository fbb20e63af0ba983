"""Calls that name a rank, a root or a tag that there cannot be."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="sometimes")
def ring_without_modulo():
    rank, x, y = dist.get_rank(), torch.tensor([float(dist.get_rank())]), torch.empty(1)
    sent = dist.isend(x, rank + 1)  # ← here
    dist.recv(y, (rank - 1) % 3)
    sent.wait()
    return y.tolist()


@right(ring_without_modulo, gives=[[2.0], [0.0], [1.0]])
def ring_with_modulo():
    rank, x, y = dist.get_rank(), torch.tensor([float(dist.get_rank())]), torch.empty(1)
    sent = dist.isend(x, (rank + 1) % 3)
    dist.recv(y, (rank - 1) % 3)
    sent.wait()
    return y.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="always")
def chain_that_receives_before_its_first_rank():
    rank, x = dist.get_rank(), torch.zeros(1)
    dist.recv(x, rank - 1)  # ← here
    x += 1
    if rank < 2:
        dist.send(x, rank + 1)
    return x.tolist()


@right(chain_that_receives_before_its_first_rank, gives=[[1.0], [2.0], [3.0]])
def chain_that_begins_at_its_first_rank():
    rank, x = dist.get_rank(), torch.zeros(1)
    if rank > 0:
        dist.recv(x, rank - 1)
    x += 1
    if rank < 2:
        dist.send(x, rank + 1)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def broadcast_from_the_rank_after_the_last():
    x = torch.full((2,), float(dist.get_rank()))
    dist.broadcast(x, src=dist.get_world_size())  # ← here
    return x.tolist()


@right(broadcast_from_the_rank_after_the_last, gives=2 * [[1.0, 1.0]])
def broadcast_from_the_last_rank():
    x = torch.full((2,), float(dist.get_rank()))
    dist.broadcast(x, src=dist.get_world_size() - 1)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def negative_tag():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=-1)  # ← here
    else:
        dist.recv(x, 0, tag=-1)  # ← here
    return x.tolist()


@right(negative_tag, gives=2 * [[0.0, 0.0]])
def tag_zero():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=0)
    else:
        dist.recv(x, 0, tag=0)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="never")
def rank_0_sends_to_itself_as_well():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        for peer in range(3):
            dist.send(x, peer)  # ← here
    else:
        dist.recv(x, 0)
    return x.tolist()


@right(rank_0_sends_to_itself_as_well, gives=3 * [[0.0]])
def rank_0_sends_to_the_others():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        for peer in range(1, 3):
            dist.send(x, peer)
    else:
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="never")
def root_outside_its_group():
    x, pair = torch.full((2,), float(dist.get_rank())), dist.new_group([0, 1])
    if dist.get_rank() < 2:
        dist.broadcast(x, src=2, group=pair)  # ← here
    return x.tolist()


@right(root_outside_its_group, gives=[[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
def root_inside_its_group():
    x, pair = torch.full((2,), float(dist.get_rank())), dist.new_group([0, 1])
    if dist.get_rank() < 2:
        dist.broadcast(x, src=1, group=pair)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=4, hangs="never")
def rank_of_a_group_taken_for_a_rank_of_the_world():
    x, upper = torch.full((1,), float(dist.get_rank())), dist.new_group([2, 3])
    if dist.get_rank() == 2:
        dist.send(x, 1, group=upper)  # ← here
    if dist.get_rank() == 3:
        dist.recv(x, 0, group=upper)  # ← here
    return x.tolist()


@right(rank_of_a_group_taken_for_a_rank_of_the_world, gives=[[0.0], [1.0], [2.0], [2.0]])
def rank_of_the_world_in_a_group():
    x, upper = torch.full((1,), float(dist.get_rank())), dist.new_group([2, 3])
    if dist.get_rank() == 2:
        dist.send(x, 3, group=upper)
    if dist.get_rank() == 3:
        dist.recv(x, 2, group=upper)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def group_of_ranks_that_there_are_not():
    x = torch.ones(1)
    pair = dist.new_group([0, 2])  # ← here
    dist.all_reduce(x, group=pair)
    return x.tolist()


@right(group_of_ranks_that_there_are_not, gives=2 * [[2.0]])
def group_of_ranks_that_there_are():
    x = torch.ones(1)
    pair = dist.new_group([0, 1])
    dist.all_reduce(x, group=pair)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def destination_forgets_where_to_gather():
    x = torch.tensor([float(dist.get_rank())])
    dist.gather(x, dst=0)  # ← here
    return x.tolist()


@right(destination_forgets_where_to_gather, gives=[[0.0, 1.0], [1.0]])
def destination_knows_where_to_gather():
    x = torch.tensor([float(dist.get_rank())])
    parts = [torch.empty(1), torch.empty(1)] if dist.get_rank() == 0 else None
    dist.gather(x, parts, dst=0)
    return torch.cat(parts).tolist() if parts else x.tolist()
