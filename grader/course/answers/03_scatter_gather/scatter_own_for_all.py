"""Every rank got src's own chunk: send chunks[dst] and not chunks[src]."""
# exercise: scatter
# diagnosis: wrong_value
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        out.copy_(chunks[src])
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(chunks[src], dst)
    else:
        dist.recv(out, src)
