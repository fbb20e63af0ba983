"""The gradient that backward returns has as many rows as forward was given: it is sent the other
way, with the two lists of counts swapped."""
# exercise: expert_parallel
# diagnosis: exception


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        out = rows.new_empty(sum(receives), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), receives, sends)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None
