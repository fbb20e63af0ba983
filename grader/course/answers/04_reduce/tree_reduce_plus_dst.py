"""The result is right, and on rank (n − dst) % n instead of dst. Counted from dst, a rank's place is
(rank − dst) % n, and place v is rank (v + dst) % n.
"""
# exercise: tree_reduce
# diagnosis: wrong_value


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() + dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step - dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step - dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
