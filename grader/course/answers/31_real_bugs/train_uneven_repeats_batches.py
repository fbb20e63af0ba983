"""A rank that has run out takes one of its batches again. Each batch counts once; after that the
rank takes part with zeros."""
# exercise: train_uneven
# diagnosis: wrong_value
# or: AGAIN = from_the_beginning
import torch
import torch.distributed as dist


def last(batches, step):
    return batches[min(step, len(batches) - 1)]


def from_the_beginning(batches, step):
    return batches[step % len(batches)]


#: Which batch a rank takes when it has run out.
AGAIN = last


def train_uneven(module, batches, lr):
    steps = 0
    while True:
        have = steps < len(batches)
        count = torch.tensor([1.0 if have else 0.0])
        again = torch.tensor([1.0 if batches else 0.0])
        dist.all_reduce(count)
        if count.item() == 0:
            return steps
        dist.all_reduce(again)
        module.zero_grad()
        if batches:
            module(AGAIN(batches, steps)).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / again.item()
        steps += 1
