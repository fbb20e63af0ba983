# exercise: halving_doubling_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def halving_doubling_all_reduce(x, op):
    """Counts and displacements, as MPICH has them."""
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    rest = n - power
    flat = x.view(-1)
    came = torch.empty_like(flat)
    if rank < 2 * rest and rank % 2:
        dist.send(flat, rank - 1)
        dist.recv(flat, rank - 1)
        return
    if rank < 2 * rest:
        dist.recv(came, rank + 1)
        combine(op, flat, came)
    number = rank // 2 if rank < 2 * rest else rank - rest
    counts = [len(flat) // power + (i < len(flat) % power) for i in range(power)]
    begin = [sum(counts[:i]) for i in range(power + 1)]
    low, high, mask, stack = 0, power, power // 2, []
    while mask:
        other = number ^ mask
        peer = 2 * other if other < rest else other + rest
        middle = low + mask
        mine, theirs = ((low, middle), (middle, high))
        if number & mask:
            mine, theirs = theirs, mine
        keep = slice(begin[mine[0]], begin[mine[1]])
        give = slice(begin[theirs[0]], begin[theirs[1]])
        request = dist.isend(flat[give], peer)
        dist.recv(came[keep], peer)
        request.wait()
        combine(op, flat[keep], came[keep])
        stack.append((peer, keep, give))
        low, high = mine
        mask //= 2
    if op == dist.ReduceOp.AVG:
        flat[keep if stack else slice(None)] /= n
    while stack:
        peer, keep, give = stack.pop()
        request = dist.isend(flat[keep], peer)
        dist.recv(flat[give], peer)
        request.wait()
    if rank < 2 * rest:
        dist.send(flat, rank + 1)
