# exercise: vocab_parallel_cross_entropy
# diagnosis: none
import torch
import torch.distributed as dist


class Sum(torch.autograd.Function):
    """The sum over ranks; every rank has the same loss, so its gradient is that of each term."""

    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


def vocab_parallel_cross_entropy(logits_shard, targets):
    width = torch.tensor(logits_shard.shape[1])
    dist.all_reduce(width)
    mine = torch.arange(int(width)).tensor_split(dist.get_world_size())[dist.get_rank()]
    with torch.no_grad():
        low = torch.finfo(logits_shard.dtype).min
        top = torch.nn.functional.pad(logits_shard, (0, 1), value=low).amax(1, keepdim=True)
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
    shifted = logits_shard - top
    sums = Sum.apply(shifted.exp().sum(1))
    hit = Sum.apply(torch.where(targets[:, None] == mine, shifted, 0).sum(1))
    return torch.mean(sums.log() - hit)
