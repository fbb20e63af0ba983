# exercise: pipelined_broadcast
# diagnosis: not_neighbour
# hint: not the next in the chain
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    for part in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if rank == src:
            for step in range(1, n):
                dist.send(part, (src + step) % n)
        else:
            dist.recv(part, src)
