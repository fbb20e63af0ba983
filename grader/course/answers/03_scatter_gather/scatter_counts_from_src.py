"""The chunks are handed out in the order of sending, counted from src; chunk r belongs to rank r.
"""
# exercise: scatter
# diagnosis: wrong_value
import torch.distributed as dist


def scatter(out, chunks, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for i in range(1, n):
            dist.send(chunks[i], (src + i) % n)
        out.copy_(chunks[0])
    else:
        dist.recv(out, src)
