# exercise: parameter_server_step
# diagnosis: none
# Rank 0 keeps the numbers of samples, and weighs what comes.
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    counts = torch.zeros(n, dtype=torch.float64)
    counts[0] = samples
    if rank:
        dist.send(torch.tensor([samples]).double(), 0)
    for src in range(1, n if rank == 0 else 1):
        dist.recv(counts[src : src + 1], src)
    for tag, grad in enumerate(grads, 1):
        if rank == 0:
            total = grad * counts[0]
            for _ in range(n - 1):
                heard = torch.empty_like(grad)
                src = dist.recv(heard, None, tag=tag)
                total.add_(heard * counts[src])
            grad.copy_(total.div_(counts.sum()))
        else:
            dist.send(grad, 0, tag=tag)
    for grad in grads:
        if rank == 0:
            for dst in reversed(range(1, n)):
                dist.send(grad, dst)
        else:
            dist.recv(grad, 0)
