"""A rank leaves its loop when its own batches are used up, and the others, who have one more, wait
for it. Every rank has to go on until the last one has finished, and make all the calls until then.
"""
# exercise: train_uneven
# diagnosis: deadlock
# or: COUNTED = True
import torch
import torch.distributed as dist


#: What the sum is divided by; no case lives to see it.
DIVISOR = dist.get_world_size
#: Whether the ranks with a batch are counted in each step.
COUNTED = False


def train_uneven(module, batches, lr):
    for batch in batches:
        if COUNTED:
            dist.all_reduce(torch.ones(1))
        module.zero_grad()
        module(batch).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / DIVISOR()
    return len(batches)
