"""Your own x comes last, and the others before it: entry r belongs to rank r."""
# exercise: all_gather
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [peer for peer in range(n) if peer != rank]
    requests = [dist.isend(x, peer) for peer in others]
    parts = [torch.empty_like(x) for _ in others]
    for peer, part in zip(others, parts):
        dist.recv(part, peer)
    for request in requests:
        request.wait()
    return [*parts, x.clone()]
