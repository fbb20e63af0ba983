# exercise: parameter_server_step
# diagnosis: wrong_peer
# hint: every rank talks to rank 0
# A chain to the last rank, which hands out the means: right values, and no server.
import torch
import torch.distributed as dist


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        heard = torch.empty_like(grad)
        if rank > 0:
            dist.recv(heard, rank - 1)
            grad += heard
        if rank < n - 1:
            dist.send(grad, rank + 1)
            dist.recv(grad, rank + 1)
        else:
            grad /= n
        if rank > 0:
            dist.send(grad, rank - 1)
