# exercise: train_uneven
# diagnosis: none
from itertools import zip_longest

import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    """One all-reduce a step: the gradients of all parameters, and the count in the last place."""
    trained = [p for p in module.parameters() if p.requires_grad]
    step, rest = 0, iter(batches)
    while True:
        batch = next(rest, None)
        grads = [torch.zeros_like(p) for p in trained]
        if batch is not None:
            found = torch.autograd.grad(module(batch).sum(), trained, allow_unused=True)
            grads = [zero if g is None else g for zero, g in zip_longest(grads, found)]
        flat = torch.cat([*(g.flatten() for g in grads), grads[0].new_ones(1) * (batch is not None)])
        dist.all_reduce(flat)
        if flat[-1] == 0:
            return step
        mean = flat[:-1] / flat[-1]
        with torch.no_grad():
            for p, g in zip(trained, mean.split([p.numel() for p in trained])):
                p.sub_(g.view_as(p), alpha=lr)
        step += 1
