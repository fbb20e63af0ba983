# exercise: scatter
# diagnosis: wrong_value
# hint: does not have its own chunk
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        out = chunks[src]
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(chunks[dst], dst)
    else:
        dist.recv(out, src)
