"""The values are right, but more travels than has to: tensors are padded to more than the longest.
What is the largest of the numbers of rows?"""
# exercise: gather_ragged
# diagnosis: too_many_bytes
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    longest = sum(count.item() for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[: len(x)] = x
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts)]
