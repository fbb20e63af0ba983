"""It fails only where dst is not rank 0. If v counts from dst, then v is a place in the tree and
not a rank: to send to it or receive from it, take rank (v + dst) % n.
"""
# exercise: tree_reduce
# diagnosis: exception


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, v - step)
            return
        if v + step < n:
            dist.recv(buffer, v + step)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
