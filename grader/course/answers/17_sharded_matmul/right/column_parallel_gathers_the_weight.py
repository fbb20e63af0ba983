# exercise: column_parallel
# diagnosis: none
import torch
import torch.distributed as dist


def column_parallel(x, weight_shard):
    """Gathers the weight instead of the product; every rank then does all of the work."""
    n, rank = dist.get_world_size(), dist.get_rank()
    total = torch.tensor(weight_shard.shape[1])
    dist.all_reduce(total)
    widest = -(-int(total) // n)
    padded = weight_shard.new_zeros(weight_shard.shape[0], widest)
    padded[:, : weight_shard.shape[1]] = weight_shard.detach()
    stacked = padded.new_empty(n * padded.shape[0], widest)
    dist.all_gather_into_tensor(stacked, padded)
    widths = [len(part) for part in torch.arange(int(total)).tensor_split(n)]
    shards = [part[:, :w] for part, w in zip(stacked.chunk(n), widths, strict=True)]
    shards[rank] = weight_shard
    return x @ torch.cat(shards, 1)
