"""A rank that has run out of batches adds the gradients of its last batch again and again: its p.grad
still holds them. Clear them in every step, or put in zeros where there is no batch."""
# exercise: train_uneven
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for step in range(int(longest)):
        count = torch.tensor(float(step < len(batches)))
        dist.all_reduce(count)
        if step < len(batches):
            module.zero_grad()
            module(batches[step]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad.clone()
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / count.item()
    return int(longest)
