"""The zeros that a rank gives where it has no gradient are not of the parameter's dtype:
torch.zeros(shape) makes float32. torch.zeros_like(p) has the dtype of p."""
# exercise: train_uneven
# diagnosis: dtype_mismatch
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
                total = torch.zeros(p.shape) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / count.item()
        steps += 1
