"""The second phase takes the exchanges in the same order as the first. A share that is finished
must grow: the last exchange comes first, and the largest part last."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True
# or: LONGER = 0
# or: FAR = True; LONGER = 0
# or: LATE = True
# or: LATE = True; FAR = True
# or: LATE = True; LONGER = 0
# or: LATE = True; FAR = True; LONGER = 0

FAR = False
LONGER = 1
LATE = False  # the whole is divided at the end


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
    if not LATE:
        divide(op, mine, n)
    for step, kept, given in done:
        exchange(kept, given, rank ^ step)
    if LATE:
        divide(op, x, n)
    if rank + power < n:
        dist.send(x, rank + power)
