"""All ranks stop when the first of them runs out, and the batches that others still have are never
used. Go on until no rank has one."""
# exercise: train_uneven
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    shortest = torch.tensor(len(batches))
    dist.all_reduce(shortest, op=dist.ReduceOp.MIN)
    steps = shortest.item()
    for batch in batches[:steps]:
        module.zero_grad()
        module(batch).sum().backward()
        for p in module.parameters():
            if p.requires_grad:
                total = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(total)
                with torch.no_grad():
                    p -= lr * total / dist.get_world_size()
    return steps
