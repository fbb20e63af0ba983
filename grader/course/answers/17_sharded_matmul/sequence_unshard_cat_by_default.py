# exercise: sequence_unshard
# diagnosis: exception
# hint: if no other is given
# not: moved to the front
import torch
import torch.distributed as dist


def sequence_unshard(x_shard, full_length, dim=1):
    n, rank = dist.get_world_size(), dist.get_rank()
    lengths = [len(part) for part in torch.arange(full_length).tensor_split(n)]
    shape = list(x_shard.shape)
    shape[dim] = max(lengths)
    padded = x_shard.new_zeros(shape)
    padded.narrow(dim, 0, lengths[rank]).copy_(x_shard.detach())
    parts = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded)
    parts = [part.narrow(dim, 0, length) for part, length in zip(parts, lengths)]
    parts[rank] = x_shard
    return torch.cat(parts)
