# exercise: train_uneven
# diagnosis: wrong_value
# hint: Gradients are never cleared, so backward adds
# Never clears gradients
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for s in range(int(longest)):
        have = s < len(batches)
        if have:
            module(batches[s]).sum().backward()
        c = torch.tensor(float(have))
        dist.all_reduce(c)
        for p in module.parameters():
            if not p.requires_grad:
                continue
            g = torch.zeros_like(p) if p.grad is None or not have else p.grad.clone()
            dist.all_reduce(g)
            with torch.no_grad():
                p -= lr * g / c.item()
    return int(longest)
