"""The ranks beyond the largest power of two take no part: their x is missing from the result, and
they do not get it. They have to give it to another rank before the exchanges begin, and are told
at the end."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        return
    came = torch.empty_like(x)
    for k in range(power.bit_length() - 1):
        exchange(x, came, rank ^ (1 << k))
        combine(op, x, came)
    divide(op, x, n)


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        return
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
    divide(op, mine, n)
    for step, kept, given in reversed(done):
        exchange(kept, given, rank ^ step)
