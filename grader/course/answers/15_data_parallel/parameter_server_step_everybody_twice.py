# exercise: parameter_server_step
# diagnosis: too_many_messages
# hint: One message to the server and one back
# The number of samples travels with each gradient.
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        count = torch.tensor([float(samples)])
        grad *= samples
        if rank:
            dist.send(count, 0)
            dist.send(grad, 0)
            dist.recv(grad, 0)
        else:
            size, heard = torch.zeros(1), torch.empty_like(grad)
            for src in range(1, n):
                dist.recv(size, src)
                dist.recv(heard, src)
                count += size
                grad += heard
            grad /= count.item()
            for dst in range(1, n):
                dist.send(grad, dst)
