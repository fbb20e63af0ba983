"""Each rank exchanges with rank + step, which exchanges with another one. The two of a pair have to name
each other: rank ^ step is the partner of rank, and rank that of rank ^ step."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: deadlock
# alike: messages
# or: SIGN = -1

SIGN = 1


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
    for k in range(power.bit_length() - 1):
        exchange(x, came, (rank + SIGN * (1 << k)) % power)
        combine(op, x, came)
    divide(op, x, n)
    if rank + power < n:
        dist.send(x, rank + power)


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        came = torch.empty_like(x)
        dist.recv(came, rank + power)
        combine(op, x, came)
    mine, done = x.view(-1), []
    for step in [1 << k for k in range(power.bit_length() - 1)]:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, (rank + SIGN * step) % power)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    divide(op, mine, n)
    for step, kept, given in reversed(done):
        exchange(kept, given, (rank + SIGN * step) % power)
    if rank + power < n:
        dist.send(x, rank + power)
