# exercise: vocab_parallel_cross_entropy
# diagnosis: too_many_bytes
# hint: there are too many of them
# not: Logits travel
import torch
import torch.distributed as dist


def reduced(x, op=dist.ReduceOp.SUM):
    total = x.clone()
    dist.all_reduce(total, op)
    return total


def largest_and_sum(logits):
    rows = logits.shape[0]
    lowest = logits.new_full((rows, 1), -torch.inf)
    top = reduced(torch.cat([logits, lowest], 1).amax(1), dist.ReduceOp.MAX)
    return top, reduced((logits - top[:, None]).exp().sum(1))


class Loss(torch.autograd.Function):
    """Backward finds the largest logit and the sum again, instead of keeping them."""

    @staticmethod
    def forward(ctx, logits, targets):
        size = int(reduced(torch.tensor(logits.shape[1])))
        mine = torch.arange(size).tensor_split(dist.get_world_size())[dist.get_rank()]
        hot = (targets[:, None] == mine).to(logits.dtype)
        top, total = largest_and_sum(logits)
        ctx.save_for_backward(logits, hot)
        return (total.log() + top - reduced((logits * hot).sum(1))).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, hot = ctx.saved_tensors
        top, total = largest_and_sum(logits)
        return grad * ((logits - top[:, None]).exp() / total[:, None] - hot) / len(logits), None


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
