"""Both ranks of a pair receive, and neither has sent: start with request = dist.isend(...), then
recv, then request.wait()."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: deadlock
# or: FAR = True

FAR = False


def exchange(out, into, other):
    dist.recv(into, other)
    dist.send(out, other)


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    came = torch.empty_like(x)
    if rank + power < n:
        dist.recv(came, rank + power)
        combine(op, x, came)
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps[::-1] if FAR else steps:
        exchange(x, came, rank ^ step)
        combine(op, x, came)
    divide(op, x, n)
    if rank + power < n:
        dist.send(x, rank + power)


def halving_doubling_all_reduce(x, op):
    recursive_doubling_all_reduce(x, op)
