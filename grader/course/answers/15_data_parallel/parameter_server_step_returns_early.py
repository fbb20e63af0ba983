# exercise: parameter_server_step
# diagnosis: deadlock
# hint: A rank without samples
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    if samples == 0:
        return
    rank, n = dist.get_rank(), dist.get_world_size()
    count = torch.tensor([float(samples)])
    for g in grads:
        g *= samples
    for t in [count] + list(grads):
        if rank == 0:
            buf = torch.empty_like(t)
            for r in range(1, n):
                dist.recv(buf, r)
                t += buf
            for r in range(1, n):
                dist.send(t, r)
        else:
            dist.send(t, 0)
            dist.recv(t, 0)
    for g in grads:
        g /= count.item()
