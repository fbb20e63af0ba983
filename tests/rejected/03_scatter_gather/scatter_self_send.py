# exercise: scatter
# diagnosis: exception
# hint: cannot send to itself
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            dist.send(chunks[dst], dst)
    dist.recv(out, src)
