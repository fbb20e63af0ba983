"""The average is divided by n twice: perhaps once before ranks hand the result on, and once more
by those that get it. Do one of the two."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value
# or: AGAIN = "told"

AGAIN = "all"


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        if AGAIN == "told":
            divide(op, x, n)
        return
    came = torch.empty_like(x)
    if rank + power < n:
        dist.recv(came, rank + power)
        combine(op, x, came)
    for k in range(power.bit_length() - 1):
        exchange(x, came, rank ^ (1 << k))
        combine(op, x, came)
    divide(op, x, n * n if AGAIN == "all" else n)
    if rank + power < n:
        dist.send(x, rank + power)


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        if AGAIN == "told":
            divide(op, x, n)
        return
    if rank + power < n:
        came = torch.empty_like(x)
        dist.recv(came, rank + power)
        combine(op, x, came)
    mine, done = x.view(-1), []
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    divide(op, mine, n * n if AGAIN == "all" else n)
    for step, kept, given in reversed(done):
        exchange(kept, given, rank ^ step)
    if rank + power < n:
        dist.send(x, rank + power)
