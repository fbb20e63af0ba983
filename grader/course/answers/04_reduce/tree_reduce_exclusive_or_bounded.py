"""rank ^ dst is a number below n for every rank only if n is a power of two. Elsewhere some ranks of the
tree are left out, or are not there. Count ranks from dst with (rank − dst) % n, and back with (v +
dst) % n.
"""
# exercise: tree_reduce
# diagnosis: deadlock
# earns: 0.25


def tree_reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    v, total, buffer, step = rank ^ dst, x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step) ^ dst)
            return
        child = (v + step) ^ dst
        if child < n and v + step < n:
            dist.recv(buffer, child)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
