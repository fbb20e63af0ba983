"""Gradients are never cleared, so backward adds to those of the last step: call module.zero_grad()
before it."""
# exercise: train_uneven
# diagnosis: wrong_value
# or: STALE = True
import torch
import torch.distributed as dist

#: Whether a rank without a batch gives the gradients that it still has.
STALE = False


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    for step in range(int(longest)):
        have = step < len(batches)
        if have:
            module(batches[step]).sum().backward()
        count = torch.tensor(float(have))
        dist.all_reduce(count)
        for p in module.parameters():
            if p.requires_grad:
                total = p.grad.clone() if (have or STALE) and p.grad is not None else torch.zeros_like(p)
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / count.item()
    return int(longest)
