"""In some step no batch has rows, and the number that is divided by is 0. A batch without rows is a
batch like any other, and counts: ask how many batches there are, and not whether one has rows."""
# exercise: train_uneven
# diagnosis: exception
# or: NUMBER = int
import torch
import torch.distributed as dist

NUMBER = float


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    for step in range(int(longest)):
        own = step < len(batches) and len(batches[step]) > 0
        counted = torch.tensor(int(own))
        dist.all_reduce(counted)
        module.zero_grad()
        if own:
            module(batches[step]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr / NUMBER(counted) * total
    return int(longest)
