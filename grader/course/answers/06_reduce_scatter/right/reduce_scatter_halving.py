# exercise: reduce_scatter
# diagnosis: none
# Recursive halving where the number of ranks is a power of two, a ring elsewhere.
import torch
import torch.distributed as dist


def pick(op):
    return {dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum}.get(op, torch.add)


def swap(outgoing, to, source):
    incoming = torch.empty_like(outgoing)
    request = dist.isend(outgoing, to)
    dist.recv(incoming, source)
    request.wait()
    return incoming


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    combine = pick(op)
    if n & (n - 1) == 0:
        mine, first, half = torch.stack(chunks), 0, n // 2
        while half:
            upper = bool(rank & half)
            keep, give = (mine[half:], mine[:half]) if upper else (mine[:half], mine[half:])
            mine = combine(keep, swap(give.clone(), rank ^ half, rank ^ half))
            first += half * upper
            half //= 2
        result = mine[0]
    else:
        result = chunks[rank - 1].clone()
        for s in range(2, n + 1):
            came = swap(result, (rank + 1) % n, (rank - 1) % n)
            result = combine(came, chunks[(rank - s) % n])
    return result / n if op == dist.ReduceOp.AVG else result.clone()
