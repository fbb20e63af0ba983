# exercise: vocab_parallel_cross_entropy
# diagnosis: none
import torch
import torch.distributed as dist


def vocab_parallel_cross_entropy(logits_shard, targets):
    return _Loss.apply(logits_shard, targets)


class _Loss(torch.autograd.Function):
    """As Megatron-LM does it: clamp, look up, mask."""

    @staticmethod
    def forward(ctx, logits, targets):
        n, rank = dist.get_world_size(), dist.get_rank()
        size = torch.tensor([logits.shape[1]])
        dist.all_reduce(size)
        base, extra = divmod(size.item(), n)
        start = rank * base + min(rank, extra)
        end = start + logits.shape[1]

        if logits.shape[1]:
            largest = logits.max(dim=1).values
        else:
            largest = torch.full((len(logits),), float("-inf"), dtype=logits.dtype)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        logits = logits - largest.unsqueeze(1)

        outside = (targets < start) | (targets >= end)
        place = (targets - start).masked_fill(outside, 0)
        if logits.shape[1]:
            hit = logits[torch.arange(len(targets)), place]
        else:
            hit = logits.new_zeros(len(targets))
        hit = hit.masked_fill(outside, 0.0)
        dist.all_reduce(hit)

        probabilities = logits.exp()
        total = probabilities.sum(dim=1)
        dist.all_reduce(total)
        probabilities /= total.unsqueeze(1)
        ctx.save_for_backward(probabilities, place, outside)
        return (total.log() - hit).mean()

    @staticmethod
    def backward(ctx, grad):
        probabilities, place, outside = ctx.saved_tensors
        slope = probabilities.clone()
        if slope.shape[1]:
            slope[torch.arange(len(place)), place] -= (~outside).to(slope.dtype)
        return slope * (grad / len(place)), None
