"""chunks is None on every rank but src: only src may look inside."""
# exercise: scatter
# diagnosis: exception
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
