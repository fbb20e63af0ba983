# exercise: vocab_parallel_cross_entropy
# diagnosis: none
import torch
import torch.distributed as dist


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        part = part.clone()
        dist.all_reduce(part)
        return part

    @staticmethod
    def backward(ctx, grad):
        return grad


def vocab_parallel_cross_entropy(logits_shard, targets):
    n, rank = dist.get_world_size(), dist.get_rank()
    size = torch.tensor(logits_shard.shape[1])
    dist.all_reduce(size)
    mine = torch.arange(int(size)).tensor_split(n)[rank].tolist()
    losses = []
    for row, target in zip(logits_shard, targets.tolist()):
        top = row.detach().max() if len(row) else torch.tensor(-torch.inf, dtype=row.dtype)
        top = top.clone()
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
        total = Sum.apply((row - top).exp().sum())
        own = row[target - mine[0]] if target in mine else row.sum() * 0
        losses.append(total.log() + top - Sum.apply(own))
    return torch.stack(losses).mean()
