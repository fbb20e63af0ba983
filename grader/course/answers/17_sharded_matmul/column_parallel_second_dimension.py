# exercise: column_parallel
# diagnosis: exception
# hint: Which line counts on two
import torch
import torch.distributed as dist


def column_parallel(x: torch.Tensor, weight_shard: torch.Tensor) -> torch.Tensor:
    """The whole product of x with a weight whose columns are shared out."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if x.requires_grad:
        x = x.view_as(x)
        x.register_hook(summed)
    mine = x @ weight_shard
    total = torch.tensor(weight_shard.shape[1])
    dist.all_reduce(total)
    widths = [len(part) for part in torch.arange(int(total)).tensor_split(n)]
    padded = mine.new_zeros(*mine.shape[:-1], max(widths))
    padded[..., : widths[rank]] = mine.detach()
    parts = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded)
    parts = [part[..., :width] for part, width in zip(parts, widths)]
    parts[rank] = mine  # the one with a history: its gradient is a part of the whole one
    return torch.cat(parts, 1)


def summed(grad):
    grad = grad.clone()
    dist.all_reduce(grad)
    return grad
