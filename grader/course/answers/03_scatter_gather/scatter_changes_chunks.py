# exercise: scatter
# diagnosis: input_changed
# hint: belong to the caller
import torch.distributed as dist


def scatter(out, chunks, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst == src:
                out.copy_(chunks[dst])
            else:
                dist.send(chunks[dst], dst)
            chunks[dst].zero_()
    else:
        dist.recv(out, src)
