# exercise: vocab_parallel_cross_entropy
# diagnosis: forbidden_call
# hint: three numbers a row are enough
import torch
import torch.distributed as dist


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        rows, width = logits.shape
        total = torch.tensor(width)
        parts = [torch.empty_like(total) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, total)
        total = sum(parts)
        columns = torch.arange(int(total)).tensor_split(dist.get_world_size())
        mine = columns[dist.get_rank()]
        lowest = logits.new_full((rows, 1), -torch.inf)
        top = torch.cat([logits, lowest], 1).amax(1)
        dist.all_reduce(top, dist.ReduceOp.MAX)
        exponentials = (logits - top[:, None]).exp()
        sums = exponentials.sum(1)
        dist.all_reduce(sums)
        hot = (targets[:, None] == mine).to(logits.dtype)
        hit = (logits * hot).sum(1)
        dist.all_reduce(hit)
        ctx.save_for_backward(exponentials / sums[:, None] - hot)
        return (sums.log() + top - hit).mean()

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope / len(slope), None


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
