"""Both ranks of a pair wait until their message is received, and neither receives. Start with
request = dist.isend(...), then recv, and only then request.wait()."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: deadlock
# or: FAR = True
# or: STARTS = True
# or: FAR = True; STARTS = True

FAR = False
STARTS = False


def exchange(out, into, other):
    if STARTS:
        dist.isend(out, other).wait()
    else:
        dist.send(out, other)
    dist.recv(into, other)


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
