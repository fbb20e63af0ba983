# exercise: scatter
# diagnosis: too_many_bytes
# hint: Each rank needs one chunk
import torch
import torch.distributed as dist


def scatter(out, chunks, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        everything = torch.stack(chunks)
        for dst in range(n):
            if dst != src:
                dist.send(everything, dst)
    else:
        everything = torch.empty((n, *out.shape), dtype=out.dtype)
        dist.recv(everything, src)
    out.copy_(everything[rank])
