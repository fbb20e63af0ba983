"""A rank that has sent is done, and its partial sum is with another rank. Here it goes on to the
next round, and waits there for a rank that is done as well: return once the sum has been sent.
"""
# exercise: tree_reduce
# diagnosis: deadlock
# or: WRITES_BACK = "dst"

WRITES_BACK = "every rank"


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step + dst) % n)
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    if v == 0 or WRITES_BACK == "every rank":
        x.copy_(total)
