"""Only the first phase is there: each rank has the whole sum of one share, and parts elsewhere.
The all-gather takes the same exchanges backwards."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True
# or: LONGER = 0

FAR = False
LONGER = 1


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
    mine = x.view(-1)
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps[::-1] if FAR else steps:
        half = (len(mine) + LONGER) // 2
        low, high = mine[:half], mine[half:]
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        mine = kept
    divide(op, mine, n)
    if rank + power < n:
        dist.send(x, rank + power)
