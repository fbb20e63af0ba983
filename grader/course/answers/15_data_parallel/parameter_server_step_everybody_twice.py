# exercise: parameter_server_step
# diagnosis: too_many_messages
# hint: One message to the server and one back
import torch
import torch.distributed as dist


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        if rank:
            dist.send(torch.tensor([grad.numel()]), 0)
            dist.send(grad, 0)
            dist.recv(grad, 0)
        else:
            size, heard = torch.zeros(1, dtype=torch.int64), torch.empty_like(grad)
            for src in range(1, n):
                dist.recv(size, src)
                dist.recv(heard, src)
                grad += heard
            grad /= n
            for dst in range(1, n):
                dist.send(grad, dst)
