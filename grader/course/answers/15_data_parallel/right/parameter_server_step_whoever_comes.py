# exercise: parameter_server_step
# diagnosis: none
import torch
import torch.distributed as dist


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for tag, grad in enumerate(grads):
        if rank == 0:
            total = grad.clone()
            for _ in range(n - 1):
                heard = torch.empty_like(grad)
                dist.recv(heard, None, tag=tag)
                total.add_(heard)
            grad.copy_(total.div_(n))
        else:
            dist.send(grad, 0, tag=tag)
    for grad in grads:
        if rank == 0:
            for dst in reversed(range(1, n)):
                dist.send(grad, dst)
        else:
            dist.recv(grad, 0)
