# exercise: column_parallel
# diagnosis: none
import torch
import torch.distributed as dist


def summed(grad):
    grad = grad.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(grad)
    return grad


def column_parallel(x, weight_shard):
    rank, n = dist.get_rank(), dist.get_world_size()
    if x.requires_grad:
        x = x.view_as(x)
        x.register_hook(summed)
    mine = x @ weight_shard
    widths = torch.zeros(n, dtype=torch.int64)
    widths[rank] = mine.shape[-1]
    dist.all_reduce(widths)
    widest = int(widths.max())
    padded = torch.nn.functional.pad(mine.detach(), (0, widest - mine.shape[-1]))
    everyone = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(everyone, padded)
    columns = [part.narrow(-1, 0, width) for part, width in zip(everyone, widths.tolist())]
    columns[rank] = mine  # the one with a history
    return torch.cat(columns, dim=-1)
