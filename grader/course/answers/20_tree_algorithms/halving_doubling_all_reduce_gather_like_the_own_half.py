"""On the way back, the half that comes is the one that you gave away, and so is its length: with an
odd number of elements it is one longer or shorter than yours."""
# exercise: halving_doubling_all_reduce
# diagnosis: size_mismatch
# or: FAR = True
# or: LONGER = 0
# or: FAR = True; LONGER = 0

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
    mine, done = x.view(-1), []
    steps = [1 << k for k in range(power.bit_length() - 1)]
    for step in steps[::-1] if FAR else steps:
        half = (len(mine) + LONGER) // 2
        low, high = mine[:half], mine[half:]
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    divide(op, mine, n)
    for step, kept, given in reversed(done):
        came = torch.empty_like(kept)
        exchange(kept, came, rank ^ step)
        given.copy_(came)
    if rank + power < n:
        dist.send(x, rank + power)
