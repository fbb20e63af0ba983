"""What goes forward waits at each stage until it has come from the stage before, and so the
messages pass one after the other, down the chain and up again. None of them depends on another:
start all of them at once."""
# exercise: chain_exchange
# diagnosis: too_many_rounds
# earns: 0.5
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    if rank > 0:
        dist.recv(before, rank - 1)
    if rank < n - 1:
        dist.send(forward, rank + 1)
        dist.recv(after, rank + 1)
    if rank > 0:
        dist.send(backward, rank - 1)
    return before, after
