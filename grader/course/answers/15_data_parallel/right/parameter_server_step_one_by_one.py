# exercise: parameter_server_step
# diagnosis: none
# The numbers of samples come first, so that each rank can send its share of the mean.
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()

    def through_server(tensor):
        if rank:
            dist.send(tensor, 0)
            dist.recv(tensor, 0)
        else:
            heard = torch.empty_like(tensor)
            for src in range(1, n):
                dist.recv(heard, src)
                tensor += heard
            for dst in range(1, n):
                dist.send(tensor, dst)

    count = torch.tensor(samples)
    through_server(count)
    for grad in grads:
        grad.mul_(samples / count.item())
        through_server(grad)
