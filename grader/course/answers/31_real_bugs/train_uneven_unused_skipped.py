"""A parameter that a rank's batch does not use has no gradient there, and the rank leaves out its
all-reduce while others make it, so that theirs meets the next one. Take part with zeros.
"""
# exercise: train_uneven
# diagnosis: dtype_mismatch
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    step = 0
    while True:
        have = step < len(batches)
        count = torch.tensor([1.0 if have else 0.0])
        dist.all_reduce(count)
        if count.item() == 0:
            return step
        module.zero_grad()
        if have:
            module(batches[step]).sum().backward()
        for p in module.parameters():
            if not p.requires_grad or (have and p.grad is None):
                continue
            g = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(g)
            with torch.no_grad():
                p -= lr * g / count.item()
        step += 1
