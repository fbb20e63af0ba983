# exercise: train_uneven
# diagnosis: none
import torch
import torch.distributed as dist


def still_there(batches, step):
    count = torch.tensor([step < len(batches)], dtype=torch.int64)
    dist.all_reduce(count)
    return int(count)


def train_uneven(module, batches, lr):
    step = 0
    while count := still_there(batches, step):
        for p in module.parameters():
            p.grad = torch.zeros_like(p)
        if step < len(batches):
            module(batches[step]).sum().backward()
        requests = [dist.all_reduce(p.grad, async_op=True) for p in module.parameters()]
        for request, p in zip(requests, module.parameters(), strict=True):
            request.wait()
            if p.requires_grad:
                p.data.add_(p.grad, alpha=-lr / count)
        step += 1
    return step
