# exercise: unblock_order
# diagnosis: deadlock
# hint: does it ever reach that call
# not: somebody has to go first | Does every rank make both calls
# Rank 0's x goes by messages, and the last rank gets none.
import torch
import torch.distributed as dist


def unblock_order(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    if rank == 0:
        for peer in range(1, n - 1):
            dist.send(first, peer)
    else:
        first = torch.empty_like(x)
        dist.recv(first, 0)
    return biggest + first
