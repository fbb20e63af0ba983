"""Each step is divided by the number of all ranks, also where some of them have run out of batches.
Divide the sum of the gradients by the number of those that still have one. (Averaging the weights
of all ranks after each has made its own step is the same mistake.)"""
# exercise: train_uneven
# diagnosis: wrong_value
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
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / dist.get_world_size()
        steps += 1
