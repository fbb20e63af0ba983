"""A batch without rows does not count here. It is a batch all the same: ask whether there is one,
step < len(batches), and not how many rows it has.
"""
# exercise: train_uneven
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    step = 0
    while True:
        has = step < len(batches) and len(batches[step]) > 0
        count = torch.tensor(float(has))
        dist.all_reduce(count)
        if count == 0:
            return step
        module.zero_grad()
        if has:
            module(batches[step]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                mean = torch.zeros_like(p) if p.grad is None else p.grad.clone()
                dist.all_reduce(mean)
                with torch.no_grad():
                    p -= lr * mean / count
        step += 1
