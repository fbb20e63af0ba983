# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# hint: taken from its exponential
# not: neutral element
import torch
import torch.distributed as dist


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        n, rank = dist.get_world_size(), dist.get_rank()
        size = torch.tensor(logits.shape[1])
        dist.all_reduce(size)
        mine = torch.arange(int(size)).tensor_split(n)[rank]
        lowest = logits.new_full((len(logits), 1), -torch.inf)
        top = torch.cat([logits, lowest], 1).amax(1)
        dist.all_reduce(top, dist.ReduceOp.MAX)
        exponentials = (logits - top[:, None]).exp()
        sums = exponentials.sum(1)
        dist.all_reduce(sums)
        hot = (targets[:, None] == mine).to(logits.dtype)
        target = (exponentials * hot).sum(1)
        dist.all_reduce(target)
        ctx.save_for_backward(exponentials / sums[:, None] - hot)
        return (sums.log() - target.log()).mean()

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope / len(slope), None


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
