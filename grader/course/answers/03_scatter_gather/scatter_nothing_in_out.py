"""out is as it was on every rank: receive into out itself, and copy src's own chunk into it."""
# exercise: scatter
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(chunks[dst], dst)
        out = chunks[src]
    else:
        out = torch.empty_like(out)
        dist.recv(out, src)
