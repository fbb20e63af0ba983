"""Ranks without rows are missing from the list. Their tensors are empty, and belong in it as well,
so that place r is rank r's."""
# exercise: gather_ragged
# diagnosis: wrong_shape
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    longest = max(count.item() for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[: len(x)] = x
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts) if count.item()]
