# exercise: ping_pong
# diagnosis: wrong_peer
# hint: Only ranks 0 and 1 play
# says: from rank 0 to rank 2
import torch
import torch.distributed as dist


def ping_pong(x):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    y = torch.empty_like(x)
    if rank == 0:
        dist.send(x, last)
        dist.recv(y, last)
        return y
    if rank == last:
        dist.recv(y, 0)
        dist.send(y + 1, 0)
    return x.clone()
