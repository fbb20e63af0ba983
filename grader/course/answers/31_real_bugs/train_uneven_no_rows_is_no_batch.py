"""A batch without rows is taken for none. It is a batch like any other, with gradients of zero, and
its rank counts in the mean: ask how many batches there are, and not whether one has rows."""
# exercise: train_uneven
# diagnosis: wrong_value
# or: LEAST = 0.0
import torch
import torch.distributed as dist

#: What is divided by where no batch has rows: by 0, 0/0 is not a number.
LEAST = 1.0


def train_uneven(module, batches, lr):
    steps = 0
    while True:
        have = steps < len(batches)
        left = torch.tensor([1.0 if have else 0.0])
        dist.all_reduce(left)
        if left.item() == 0:
            return steps
        count = torch.tensor([1.0 if have and len(batches[steps]) else 0.0])
        dist.all_reduce(count)
        module.zero_grad()
        if have:
            module(batches[steps]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / max(count.item(), LEAST)
        steps += 1
