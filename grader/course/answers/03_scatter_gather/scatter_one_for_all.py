"""Every rank got the same chunk, number 0: rank r needs chunks[r]."""
# exercise: scatter
# diagnosis: wrong_value
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        out.copy_(chunks[0])
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(chunks[0], dst)
    else:
        dist.recv(out, src)
