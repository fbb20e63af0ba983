"""Where the number of elements is odd, one of them is in neither half, and so it is never reduced.
tensor_split(2) leaves none out."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True
# or: DIVIDES_LAST = True
# or: FAR = True; DIVIDES_LAST = True

FAR = False
#: Whether all of x is divided at the end, and not what each rank is responsible for.
DIVIDES_LAST = False


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
        half = len(mine) // 2
        low, high = mine[:half], mine[half : 2 * half]
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    if not DIVIDES_LAST:
        divide(op, mine, n)
    for step, kept, given in reversed(done):
        exchange(kept, given, rank ^ step)
    if DIVIDES_LAST:
        divide(op, x, n)
    if rank + power < n:
        dist.send(x, rank + power)
