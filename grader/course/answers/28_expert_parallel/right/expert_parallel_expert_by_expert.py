# exercise: expert_parallel
# diagnosis: none
import torch
import torch.distributed as dist


class Swap(torch.autograd.Function):
    """Rows to their ranks; backward swaps the two lists of counts."""

    @staticmethod
    def forward(ctx, rows, to_others, from_others):
        ctx.save_for_backward(to_others, from_others)
        out = torch.empty(int(from_others.sum()), rows.size(1), dtype=rows.dtype)
        dist.all_to_all_single(
            out,
            rows.contiguous(),
            output_split_sizes=from_others.tolist(),
            input_split_sizes=to_others.tolist(),
        )
        return out

    @staticmethod
    def backward(ctx, gradient):
        to_others, from_others = ctx.saved_tensors
        return Swap.apply(gradient, from_others, to_others), None, None


def expert_parallel(x, expert, experts):
    """An exchange of its own for each of the experts of a rank."""
    n = dist.get_world_size()
    result = torch.zeros_like(x)
    for i, network in enumerate(experts):
        owner = torch.where(expert % len(experts) == i, expert // len(experts), -1)
        owner = torch.where(expert < 0, -1, owner)
        sorted_owner, order = owner.sort(stable=True)
        order = order[sorted_owner >= 0]
        counts = torch.bincount(owner[order], minlength=n)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        back = Swap.apply(network(Swap.apply(x[order], counts, arriving)), arriving, counts)
        result = result.index_add(0, order, back)
    return result
