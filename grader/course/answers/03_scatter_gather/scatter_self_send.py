"""A rank cannot send to itself or receive from itself: torch refuses both. src copies its own
chunk into out."""
# exercise: scatter
# diagnosis: exception
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            dist.send(chunks[dst], dst)
    dist.recv(out, src)
