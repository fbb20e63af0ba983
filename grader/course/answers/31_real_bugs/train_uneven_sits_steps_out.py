"""A rank without a batch sits the step out, and the others wait for it. It makes all calls of the step:
with 0 where ranks count who has a batch, and with zeros for its gradients."""
# exercise: train_uneven
# diagnosis: deadlock
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor([len(batches)])
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for step in range(int(longest)):
        if step >= len(batches):
            continue
        module.zero_grad()
        module(batches[step]).sum().backward()
        count = torch.tensor([1.0])
        dist.all_reduce(count)
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / count.item()
    return int(longest)
