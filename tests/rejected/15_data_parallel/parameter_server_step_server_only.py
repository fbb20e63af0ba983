# exercise: parameter_server_step
# diagnosis: wrong_value
# hint: send it back
import torch
import torch.distributed as dist


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        if rank:
            dist.send(grad, 0)
        else:
            for src in range(1, n):
                heard = torch.empty_like(grad)
                dist.recv(heard, src)
                grad.add_(heard)
            grad.div_(n)
