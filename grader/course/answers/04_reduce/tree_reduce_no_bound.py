"""It is right where the number of ranks is a power of two. Elsewhere some partners do not exist:
rank v receives from v + step only if v + step < n, and sends all the same when its turn comes.
"""
# exercise: tree_reduce
# diagnosis: deadlock
# or: BOUND = 0

#: By how much v + step may pass n.
BOUND = float("inf")


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step + dst) % n)
            return
        if v + step - n <= BOUND:
            dist.recv(buffer, (v + step + dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
