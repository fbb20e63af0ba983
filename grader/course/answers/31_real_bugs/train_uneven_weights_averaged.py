"""Each step is divided by the number of all ranks, also where some of them have run out of batches.
Divide the sum of the gradients by the number of those that still have one. (Averaging the weights
of all ranks after each has made its own step is the same mistake.)"""
# exercise: train_uneven
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for step in range(longest.item()):
        if step < len(batches):
            module.zero_grad()
            module(batches[step]).sum().backward()
            with torch.no_grad():
                for p in module.parameters():
                    if p.grad is not None:
                        p -= lr * p.grad
        with torch.no_grad():
            for p in module.parameters():
                dist.all_reduce(p)
                p /= dist.get_world_size()
    return longest.item()
