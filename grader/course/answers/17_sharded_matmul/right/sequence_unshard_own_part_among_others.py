# exercise: sequence_unshard
# diagnosis: none
import torch
import torch.distributed as dist


def sequence_unshard(x_shard, full_length, dim=1):
    rank, n = dist.get_rank(), dist.get_world_size()
    longest = (full_length + n - 1) // n
    shape = list(x_shard.shape)
    shape[dim] = longest - x_shard.shape[dim]
    padded = torch.cat([x_shard.detach(), x_shard.new_zeros(shape)], dim).contiguous()
    parts = [torch.zeros_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded)
    size, extra = divmod(full_length, n)
    parts = [part.narrow(dim, 0, size + (r < extra)) for r, part in enumerate(parts)]
    parts[rank] = x_shard
    return torch.cat(parts, dim=dim)
