# exercise: sequence_unshard
# diagnosis: wrong_shape
# hint: moved to the front
# not: if no other is given
import torch
import torch.distributed as dist


def lengths(total):
    return [len(part) for part in torch.arange(total).tensor_split(dist.get_world_size())]


def sequence_unshard(x_shard, full_length, dim=1):
    n, rank = dist.get_world_size(), dist.get_rank()
    rows = x_shard.movedim(dim, 0)
    longest = -(-full_length // n)
    padded = rows.new_zeros(longest, *rows.shape[1:])
    padded[: len(rows)] = rows.detach()
    parts = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded)
    parts = [part[:length] for part, length in zip(parts, lengths(full_length), strict=True)]
    parts[rank] = rows
    return torch.cat(parts)
