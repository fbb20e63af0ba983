"""A rank without rows returns before any call, and the others wait for it. It has nothing to give,
but they need its call, and it needs their rows."""
# exercise: gather_ragged
# diagnosis: deadlock
import torch
import torch.distributed as dist


def gather_ragged(x):
    if len(x) == 0:
        return []
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    longest = max(count.item() for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[: len(x)] = x
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts)]
