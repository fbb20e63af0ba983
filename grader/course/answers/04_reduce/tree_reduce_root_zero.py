"""The result is on rank 0. The root of the tree is dst: count the ranks from it, v = (rank − dst)
% n.
"""
# exercise: tree_reduce
# diagnosis: wrong_value
# or: TOTAL = "x"

TOTAL = "a copy"


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = dist.get_rank()
    total = x.clone() if TOTAL == "a copy" else x
    buffer, step = torch.empty_like(x), 1
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
