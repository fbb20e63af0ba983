# exercise: tutorial_all_reduce
# diagnosis: none
# A sum that grows along the chain, and the whole on its way back: 2(n - 1) messages in all.
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    recv.copy_(send)
    if rank > 0:
        came = torch.empty_like(send)
        dist.recv(came, rank - 1)
        recv += came
    if rank < n - 1:
        dist.send(recv, rank + 1)
        dist.recv(recv, rank + 1)
    if rank > 0:
        dist.send(recv, rank - 1)
