"""You divide by the number of ranks whose p.grad is not None. A rank that has a batch counts, even
where its batch does not use this parameter: its gradient is zero there.
"""
# exercise: train_uneven
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for step in range(int(longest)):
        module.zero_grad()
        if step < len(batches):
            module(batches[step]).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                count = torch.tensor(float(p.grad is not None))
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                dist.all_reduce(count)
                with torch.no_grad():
                    p -= lr * total / count.clamp(min=1).item()
    return int(longest)
