"""p.grad is None on a rank without a batch, and where the batch does not use the parameter. Such a
rank takes part with torch.zeros_like(p)."""
# exercise: train_uneven
# diagnosis: exception
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    steps = 0
    while True:
        have = steps < len(batches)
        count = torch.tensor([1.0 if have else 0.0])
        dist.all_reduce(count)
        if count.item() == 0:
            return steps
        module.zero_grad()
        if have:
            module(batches[steps]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / count.item()
        steps += 1
