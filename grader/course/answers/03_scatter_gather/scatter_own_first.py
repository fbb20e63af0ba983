"""src keeps chunks[0] for itself and hands out the rest in order. Chunks belong to ranks: rank r
gets chunks[r], and src's own is chunks[src].
"""
# exercise: scatter
# diagnosis: wrong_value
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() != src:
        dist.recv(out, src)
        return
    out.copy_(chunks[0])
    others = [dst for dst in range(dist.get_world_size()) if dst != src]
    for dst, chunk in zip(others, chunks[1:]):
        dist.send(chunk, dst)
