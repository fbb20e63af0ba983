"""The list has one tensor n times, so every rank's rows were written over those of the one before.
Make a tensor for each rank, as in [torch.empty_like(padded) for _ in range(n)]."""
# exercise: gather_ragged
# diagnosis: buffer_race
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    longest = max(count.item() for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[: len(x)] = x
    everyone = [torch.empty_like(padded)] * n
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts)]
