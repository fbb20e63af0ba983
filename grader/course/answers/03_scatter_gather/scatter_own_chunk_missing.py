"""src does not have its own chunk: copy it with out.copy_(chunks[src]). A line out = ... only
gives the name out to another tensor."""
# exercise: scatter
# diagnosis: wrong_value
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        out = chunks[src]
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(chunks[dst], dst)
    else:
        dist.recv(out, src)
