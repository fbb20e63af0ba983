# exercise: train_uneven
# diagnosis: none
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    """All ranks learn the largest number of batches first, and the holders of each step at once."""
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    steps = longest.item()
    holders = torch.zeros(steps)
    holders[: len(batches)] = 1
    dist.all_reduce(holders)
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    for step in range(steps):
        optimizer.zero_grad()
        if step < len(batches):
            (module(batches[step]).sum() / holders[step].item()).backward()
        for p in module.parameters():
            if p.requires_grad:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                dist.all_reduce(p.grad)
        optimizer.step()
    return steps
