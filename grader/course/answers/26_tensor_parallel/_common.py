"""What the mistakes of this chapter share: both ends of a layer, and a loss in parts."""
import torch
import torch.distributed as dist
from torch.nn import functional as F


def added_up(x):
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad)


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return added_up(part)

    @staticmethod
    def backward(ctx, grad):
        return grad


def columns(width):
    """Return the numbers of this rank's columns."""
    total = added_up(torch.tensor(width))
    return torch.arange(int(total)).tensor_split(dist.get_world_size())[dist.get_rank()]


def largest(logits):
    lowest = logits.new_full((len(logits), 1), -torch.inf)
    top = torch.cat([logits, lowest], 1).amax(1)
    dist.all_reduce(top, dist.ReduceOp.MAX)
    return top


def one_hot(logits, targets):
    return (targets[:, None] == columns(logits.shape[1])).to(logits.dtype)


def target_logit(logits, targets):
    """Return the target's logit where this rank has it, else 0."""
    return (logits * one_hot(logits, targets)).sum(1)


def total(x):
    """Add up what the ranks have of the sums and of the targets' logits."""
    return added_up(x)


def loss_of(sums, top, hit):
    return (sums.log() + top - hit).mean()


def slope_of(exponentials, sums, hot):
    return (exponentials / sums[:, None] - hot) / len(hot)


def gradient(grad, slope):
    return grad * slope


#: Whether the target's logit is taken after the largest was subtracted.
SUBTRACTED = False


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        top = largest(logits)
        shifted = logits - top[:, None]
        exponentials = shifted.exp()
        sums = total(exponentials.sum(1))
        hit = total(target_logit(shifted if SUBTRACTED else logits, targets))
        ctx.save_for_backward(slope_of(exponentials, sums, one_hot(logits, targets)))
        return loss_of(sums, torch.zeros_like(top) if SUBTRACTED else top, hit)

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return gradient(grad, slope), None
