"""Whole tensors are exchanged. After the first exchange a rank needs the sum of one half only, so
send a half, then a quarter, then an eighth."""
# exercise: halving_doubling_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if power < n:
        recursive_doubling_all_reduce(x, op)
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
