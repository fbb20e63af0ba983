# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# hint: every share to every rank
# earns: 0.5
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    for share in x.view(-1).tensor_split(n):
        if rank == src:
            for other in range(n):
                if other != src:
                    dist.send(share, other)
        else:
            dist.recv(share, src)
