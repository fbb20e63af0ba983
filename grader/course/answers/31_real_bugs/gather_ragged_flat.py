"""The numbers are right, their shape is not: every tensor is flat. Give each back the shape of a
row, x.shape[1:]."""
# exercise: gather_ragged
# diagnosis: wrong_shape
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([x.numel()]))
    padded = x.new_zeros(max(count.item() for count in counts))
    padded[: x.numel()] = x.flatten()
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    return [part[: count.item()] for part, count in zip(everyone, counts)]
