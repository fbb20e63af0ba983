"""With AVG what is sent is divided before it is sent, and again where it arrives or is passed on.
Let sums travel, and divide once, on dst, at the end."""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value
# or: BY = "two"

BY = "n"


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x / (2 if BY == "two" else n) if op == R.AVG else x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            combine(op, x, buffer)
    finish(op, x, n)


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total / (2 if BY == "two" else n) if op == R.AVG else total, (v - step + dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)
