# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value
# hint: Only the scatter
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    shares = x.view(-1).tensor_split(n)
    if rank == src:
        for place in range(1, n):
            dist.send(shares[place], (src + place) % n)
    else:
        dist.recv(shares[v], src)
