"""All tensors are cut to the shortest, and rows are lost. Pad to the longest instead."""
# exercise: gather_ragged
# diagnosis: wrong_shape
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    shortest = min(count.item() for count in counts)
    padded = x[:shortest].clone()
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part for part in everyone]
