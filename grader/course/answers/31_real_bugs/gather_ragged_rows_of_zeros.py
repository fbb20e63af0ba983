"""Rows that hold nothing but zeros are taken for padding. Cut each tensor to the number of rows that its
rank has told, and not to what is not zero."""
# exercise: gather_ragged
# diagnosis: wrong_shape
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = [torch.empty(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    padded = x.new_zeros((int(max(counts)), *x.shape[1:]))
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded)
    return [part[part.reshape(len(part), -1).ne(0).any(1)] if part.numel() else part for part in parts]
