# exercise: sequence_unshard
# diagnosis: forbidden_call
# hint: torch.distributed.nn.functional
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnf


def lengths(total):
    return [len(part) for part in torch.arange(total).tensor_split(dist.get_world_size())]


def sequence_unshard(x_shard, full_length, dim=1):
    sizes = lengths(full_length)
    shape = list(x_shard.shape)
    shape[dim] = max(sizes) - x_shard.shape[dim]
    padded = torch.cat([x_shard, x_shard.new_zeros(shape)], dim)
    parts = dnf.all_gather(padded.contiguous())
    return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, sizes, strict=True)], dim)
