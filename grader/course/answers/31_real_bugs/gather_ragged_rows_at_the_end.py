"""The padding comes before the rows, and you cut off the end: zeros are kept, and rows are lost.
Put the rows at the beginning, or cut the other end."""
# exercise: gather_ragged
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    longest = max(count.item() for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[longest - len(x) :] = x
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts)]
