"""Groups made in different orders, by some ranks only, mistaken for others, or gone."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def some_reduce_in_a_group_and_others_in_the_world():
    x, pair = torch.ones(1), dist.new_group([0, 1])
    if dist.get_rank() == 0:
        dist.all_reduce(x, group=pair)  # ← here
    else:
        dist.all_reduce(x)  # ← here
    return x.tolist()


@right(some_reduce_in_a_group_and_others_in_the_world, gives=[[2.0], [2.0], [1.0]])
def members_reduce_in_their_group():
    x, pair = torch.ones(1), dist.new_group([0, 1])
    if dist.get_rank() in (0, 1):
        dist.all_reduce(x, group=pair)
    else:
        x = torch.ones(1)
    return x.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="sometimes")
def groups_made_in_another_order():
    x, rank = torch.ones(1), dist.get_rank()
    order = ([0, 1], [1, 2]) if rank == 1 else ([1, 2], [0, 1])
    groups = {tuple(ranks): dist.new_group(ranks) for ranks in order}  # ← here
    if rank < 2:
        dist.all_reduce(x, group=groups[0, 1])
    return x.tolist()


@right(groups_made_in_another_order, gives=[[2.0], [2.0], [1.0]])
def groups_made_in_the_same_order():
    x, rank = torch.ones(1), dist.get_rank()
    order = ([0, 1], [1, 2]) if rank < 3 else ([1, 2], [0, 1])
    groups = {tuple(ranks): dist.new_group(ranks) for ranks in order}
    if rank < 2:
        dist.all_reduce(x, group=groups[0, 1])
    return x.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="always")
def ranks_disagree_on_who_is_in_a_group():
    x = torch.ones(1)
    group = dist.new_group([0, 1] if dist.get_rank() == 0 else [0, 1, 2])  # ← here
    if dist.get_rank() < 2:
        dist.all_reduce(x, group=group)
    return x.tolist()


@right(ranks_disagree_on_who_is_in_a_group, gives=[[2.0], [2.0], [1.0]])
def ranks_agree_on_who_is_in_a_group():
    x = torch.ones(1)
    group = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        dist.all_reduce(x, group=group)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def only_one_member_makes_the_group():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        pair = dist.new_group([0, 1])  # ← here
        dist.all_reduce(x, group=pair)
    return x.tolist()


@right(only_one_member_makes_the_group, gives=[[2.0], [2.0], [1.0]])
def everybody_makes_the_group():
    x = torch.ones(1)
    pair = dist.new_group([0, 1])
    if dist.get_rank() != 2:
        dist.all_reduce(x, group=pair)
    return x.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=2, hangs="never")
def reduces_in_a_group_that_is_destroyed():
    x, both = torch.ones(1), dist.new_group([0, 1])
    dist.all_reduce(x, group=both)
    dist.destroy_process_group(both)
    dist.all_reduce(x, group=both)  # ← here
    return x.tolist()


@right(reduces_in_a_group_that_is_destroyed, gives=2 * [[4.0]])
def destroys_a_group_at_the_end():
    x, both = torch.ones(1), dist.new_group([0, 1])
    dist.all_reduce(x, group=both)
    dist.all_reduce(x, group=both)
    dist.destroy_process_group(both)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def three_groups_in_a_circle():
    rank, x = dist.get_rank(), torch.ones(1)
    pairs = [dist.new_group(ranks) for ranks in ([0, 1], [1, 2], [0, 2])]
    own, other = pairs[rank], pairs[rank - 1]
    dist.all_reduce(x, group=own)  # ← here
    dist.all_reduce(x, group=other)
    return x.tolist()


@right(three_groups_in_a_circle, gives=[[5.0], [3.0], [5.0]])
def three_groups_in_a_line():
    rank, x = dist.get_rank(), torch.ones(1)
    pairs = [dist.new_group(ranks) for ranks in ([0, 1], [1, 2], [0, 2])]
    for members, pair in zip(({0, 1}, {1, 2}, {0, 2}), pairs, strict=True):
        if rank in members:
            dist.all_reduce(x, group=pair)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def rows_and_columns_in_a_circle():
    rank, x = dist.get_rank(), torch.ones(1)
    rows = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
    columns = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])]
    groups = [rows[rank // 2], columns[rank % 2]]
    if rank in (0, 3):
        groups.reverse()
    for group in groups:
        dist.all_reduce(x, group=group)  # ← here
    return x.tolist()


@right(rows_and_columns_in_a_circle, gives=4 * [[4.0]])
def rows_before_columns():
    rank, x = dist.get_rank(), torch.ones(1)
    rows = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
    columns = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])]
    groups = [columns[rank % 2], rows[rank // 2]]
    if rank in (0, 1, 2, 3):
        groups.reverse()
    for group in groups:
        dist.all_reduce(x, group=group)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def sends_in_a_group_and_receives_in_the_world():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    pair = dist.new_group([0, 1])
    if rank == 0:
        dist.send(x, 1, group=pair)  # ← here
    elif rank == 1:
        dist.recv(x, 0)  # ← here
    return x.tolist()


@right(sends_in_a_group_and_receives_in_the_world, gives=[[0.0], [0.0], [2.0]])
def sends_and_receives_in_a_group():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    pair = dist.new_group([0, 1])
    if rank == 0:
        dist.send(x, 1, group=pair)
    elif rank == 1:
        dist.recv(x, 0, group=pair)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def member_of_a_group_misses_its_barrier():
    rank = dist.get_rank()
    upper = dist.new_group([1, 2, 3])
    if rank in (2, 3):
        dist.barrier(group=upper)  # ← here
    return rank


@right(member_of_a_group_misses_its_barrier, gives=[0, 1, 2, 3])
def every_member_of_a_group_calls_its_barrier():
    rank = dist.get_rank()
    upper = dist.new_group([1, 2, 3])
    if rank in (1, 2, 3):
        dist.barrier(group=upper)
    return rank


@wrong(Diagnosis.ORDER_MISMATCH, ranks=4, hangs="sometimes")
def two_collectives_of_a_group_in_another_order():
    rank, x, y = dist.get_rank(), torch.ones(1), torch.ones(1)
    upper = dist.new_group([2, 3])
    if rank == 2:
        dist.broadcast(x, 2, group=upper)  # ← here
        dist.all_reduce(y, group=upper)
    elif rank == 3:
        dist.all_reduce(y, group=upper)  # ← here
        dist.broadcast(x, 2, group=upper)
    return y.tolist()


@right(two_collectives_of_a_group_in_another_order, gives=[[1.0], [1.0], [2.0], [2.0]])
def two_collectives_of_a_group_in_the_same_order():
    rank, x, y = dist.get_rank(), torch.ones(1), torch.ones(1)
    upper = dist.new_group([2, 3])
    if rank == 2:
        dist.broadcast(x, 2, group=upper)
        dist.all_reduce(y, group=upper)
    elif rank == 3:
        dist.broadcast(x, 2, group=upper)
        dist.all_reduce(y, group=upper)
    return y.tolist()


@wrong(Diagnosis.EXCEPTION, ranks=3, hangs="never")
def receives_in_a_group_it_is_not_in():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    pair = dist.new_group([0, 1])
    if rank == 2:
        parts = [torch.empty(1), torch.empty(1)]
        dist.all_gather(parts, x, group=pair)
        return dist.get_group_rank(pair, rank)  # ← here
    return rank


@right(receives_in_a_group_it_is_not_in, gives=[0, 1, 2])
def asks_for_its_rank_in_a_group_it_is_in():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    pair = dist.new_group([0, 1])
    if rank < 2:
        parts = [torch.empty(1), torch.empty(1)]
        dist.all_gather(parts, x, group=pair)
        return dist.get_group_rank(pair, rank)
    return rank
