# exercise: scatter
# diagnosis: exception
# hint: chunks is None
import torch.distributed as dist


def scatter(out, chunks, src):
    n = len(chunks)
    if dist.get_rank() == src:
        out.copy_(chunks[src])
        for dst in range(n):
            if dst != src:
                dist.send(chunks[dst], dst)
    else:
        dist.recv(out, src)
