"""A rank without a batch leaves out the all-reduce that counts who has one, and its next call meets that
of the others. Every rank takes part in the count, with 0 if it has none."""
# exercise: train_uneven
# diagnosis: dtype_mismatch
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor([len(batches)])
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for step in range(int(longest)):
        module.zero_grad()
        have = torch.tensor([1.0 if step < len(batches) else 0.0])
        if step < len(batches):
            module(batches[step]).sum().backward()
            dist.all_reduce(have)
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / have.item()
    return int(longest)
