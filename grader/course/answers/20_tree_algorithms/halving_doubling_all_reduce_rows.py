"""x has rows and columns here, and your halves are rows: an odd number of rows has no even halves.
Cut elements: x.view(-1).tensor_split(2)."""
# exercise: halving_doubling_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5
# or: FAR = True

FAR = False


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
    mine, done = x, []
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps[::-1] if FAR else steps:
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
