# exercise: parameter_server_step
# diagnosis: wrong_value
# hint: The list holds new tensors
# says: in other tensors than those that were in grads
import torch
import torch.distributed as dist


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for i, grad in enumerate(grads):
        if rank:
            dist.send(grad, 0)
            mean = torch.empty_like(grad)
            dist.recv(mean, 0)
        else:
            total = grad.clone()
            for src in range(1, n):
                heard = torch.empty_like(grad)
                dist.recv(heard, src)
                total += heard
            mean = total / n
            for dst in range(1, n):
                dist.send(mean, dst)
        grads[i] = mean
