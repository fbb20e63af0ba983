# exercise: scatter
# diagnosis: aliased
# says: out shares memory with chunks
# hint: out.copy_(chunks[src])
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() != src:
        dist.recv(out, src)
        return
    for dst, chunk in enumerate(chunks):
        if dst == src:
            out.data = chunk
        else:
            dist.send(chunk, dst)
