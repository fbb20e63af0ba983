# exercise: column_parallel
# diagnosis: forbidden_call
# hint: torch.distributed.nn.functional
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnf


def lengths(total):
    return [len(part) for part in torch.arange(total).tensor_split(dist.get_world_size())]


def widths_of(weight_shard):
    total = torch.tensor(weight_shard.shape[1])
    dist.all_reduce(total)
    return lengths(int(total))


class Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


def column_parallel(x, weight_shard):
    widths = widths_of(weight_shard)
    y = Share.apply(x) @ weight_shard
    padded = torch.nn.functional.pad(y, (0, max(widths) - y.shape[-1]))
    parts = dnf.all_gather(padded)
    return torch.cat([p[..., :k] for p, k in zip(parts, widths, strict=True)], -1)
