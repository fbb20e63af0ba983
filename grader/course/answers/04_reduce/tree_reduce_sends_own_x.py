"""Every rank sends its own x, so what the ranks inside the tree have combined is lost: send the
partial result.
"""
# exercise: tree_reduce
# diagnosis: wrong_value


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(x, (v - step + dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
