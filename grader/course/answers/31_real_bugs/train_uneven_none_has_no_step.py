"""Some rank leaves out an all-reduce that the others wait in. Does it skip a parameter whose gradient is
None, as on a rank without a batch, and where the batch does not use it? Take part with
torch.zeros_like(p)."""
# exercise: train_uneven
# diagnosis: deadlock
# or: SKIPPED = "the parameters"
import torch
import torch.distributed as dist

#: What a rank without a batch leaves out; one with a batch leaves out what it does not use.
SKIPPED = "a parameter"


def train_uneven(module, batches, lr):
    longest = torch.tensor([len(batches)])
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for step in range(int(longest)):
        module.zero_grad()
        have = step < len(batches)
        count = torch.tensor([1.0 if have else 0.0])
        if have:
            module(batches[step]).sum().backward()
        dist.all_reduce(count)
        for p in module.parameters():
            if not p.requires_grad or (p.grad is None if SKIPPED == "a parameter" else not have):
                continue
            total = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(total)
            with torch.no_grad():
                p -= lr * total / count.item()
    return int(longest)
