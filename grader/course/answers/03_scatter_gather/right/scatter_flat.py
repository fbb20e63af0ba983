# exercise: scatter
# diagnosis: none
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst == src:
                out.copy_(chunks[dst])
            else:
                dist.send(chunks[dst], dst)
    else:
        dist.recv(out, src)
