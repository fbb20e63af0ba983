# exercise: column_parallel
# diagnosis: none
import torch
import torch.distributed as dist


class Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad


def column_parallel(x, weight_shard):
    n, rank = dist.get_world_size(), dist.get_rank()
    widths = [torch.empty((), dtype=torch.int64) for _ in range(n)]
    dist.all_gather(widths, torch.tensor(weight_shard.shape[1]))
    before = int(sum(widths[:rank]))
    after = int(sum(widths[rank + 1 :]))
    y = torch.nn.functional.pad(Share.apply(x) @ weight_shard, (before, after))
    # changes y behind autograd's back, which is as it should be: a sum passes gradients on
    dist.all_reduce(y)
    return y
