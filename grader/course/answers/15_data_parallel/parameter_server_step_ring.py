# exercise: parameter_server_step
# diagnosis: wrong_peer
# hint: every rank talks to rank 0
# A chain to the last rank, which hands out the means: right values, and no server.
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    count = torch.tensor([float(samples)])
    for grad in grads:
        grad *= samples
    for tensor in [count, *grads]:
        heard = torch.empty_like(tensor)
        if rank > 0:
            dist.recv(heard, rank - 1)
            tensor += heard
        if rank < n - 1:
            dist.send(tensor, rank + 1)
            dist.recv(tensor, rank + 1)
        if rank > 0:
            dist.send(tensor, rank - 1)
    for grad in grads:
        grad /= count.item()
