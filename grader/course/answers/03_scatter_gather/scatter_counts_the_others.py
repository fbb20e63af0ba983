"""Each rank after src has the chunk of the rank before it. You counted the ranks without src, but
chunks has an entry for src as well: rank r needs chunks[r].
"""
# exercise: scatter
# diagnosis: wrong_value
# or: OWN = "the last"
import torch.distributed as dist

OWN = "its own"


def scatter(out, chunks, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != src:
        dist.recv(out, src)
        return
    others = [dst for dst in range(n) if dst != src]
    for i, dst in enumerate(others):
        dist.send(chunks[i], dst)
    out.copy_(chunks[src] if OWN == "its own" else chunks[-1])
