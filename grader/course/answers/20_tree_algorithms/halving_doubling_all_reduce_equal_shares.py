"""The last elements are not reduced: the length is not divisible by the number of ranks, and equal
shares leave some over. tensor_split(2) leaves none."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value


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
    flat = x.view(-1)
    mine, done = flat[: len(flat) // power * power], []
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    divide(op, mine, n)
    for step, kept, given in reversed(done):
        exchange(kept, given, rank ^ step)
    if rank + power < n:
        dist.send(x, rank + power)
