"""backward returns one gradient for each argument of forward, in that order, and None for those
that are not tensors."""
# exercise: expert_parallel
# diagnosis: exception


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        ctx.counts = sends, receives
        out = rows.new_empty(sum(receives), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), receives, sends)
        return out

    @staticmethod
    def backward(ctx, grad):
        sends, receives = ctx.counts
        return AllToAll.apply(grad, receives, sends)
