"""The second round goes wrong: partners are 2 places apart there, and 4 in the third round. Yours
are one apart again, as they are if v // 2 numbers anew the ranks that are left. Leave v as it is,
and take v − step and v + step.
"""
# exercise: tree_reduce
# diagnosis: deadlock


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v % 2 == 1:
            dist.send(total, (v - 1 + dst) % n)
            return
        if v + 1 < n:
            dist.recv(buffer, (v + 1 + dst) % n)
            combine(op, total, buffer)
        v //= 2
        step *= 2
    finish(op, total, n)
    x.copy_(total)
