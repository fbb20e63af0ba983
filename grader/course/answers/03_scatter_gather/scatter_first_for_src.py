"""The others have their chunks, but src copied chunks[0] into out: its own is chunks[src]."""
# exercise: scatter
# diagnosis: wrong_value
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() != src:
        dist.recv(out, src)
        return
    out.copy_(chunks[0])
    for dst, chunk in enumerate(chunks):
        if dst != src:
            dist.send(chunk, dst)
