# exercise: gather_ragged
# diagnosis: exception
# hint: have room for 300
# The numbers of rows travel in one byte each, which holds no number above 255.
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.uint8) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)], dtype=torch.uint8))
    longest = max(int(count) for count in counts)
    padded = x.new_zeros(longest, *x.shape[1:])
    padded[: len(x)] = x
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: int(count)] for part, count in zip(everyone, counts)]
