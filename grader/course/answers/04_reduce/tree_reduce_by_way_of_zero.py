"""The result is complete on rank 0, and goes from there to dst: one message and one round more. The
root of the tree is dst: count the ranks from it, v = (rank − dst) % n.
"""
# exercise: tree_reduce
# diagnosis: too_many_messages
# alike: messages
# earns: 0.8
import torch
import torch.distributed as dist


def tree_reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if rank & step:
            dist.send(total, rank - step)
            break
        if rank + step < n:
            dist.recv(buffer, rank + step)
            combine(op, total, buffer)
        step *= 2
    if rank == 0:
        finish(op, total, n)
        if dst == 0:
            x.copy_(total)
        else:
            dist.send(total, dst)
    elif rank == dst:
        dist.recv(x, 0)
