"""That is a chain: no rank receives more than once, and each waits for the one before it. In a
tree half of the ranks send in the first round, a quarter in the second.
"""
# exercise: tree_reduce
# diagnosis: too_many_rounds
# earns: 0.5
# or: NEXT = 1

NEXT = -1


def tree_reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total, buffer = x.clone(), torch.empty_like(x)
    if (rank - NEXT) % n != dst:
        dist.recv(buffer, (rank - NEXT) % n)
        combine(op, total, buffer)
    if rank != dst:
        dist.send(total, (rank + NEXT) % n)
    else:
        finish(op, total, n)
        x.copy_(total)
