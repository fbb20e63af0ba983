"""Gradients are divided by n on their way back. Nothing is averaged here: a gradient travels to
the rank that its row came from, as it is."""
# exercise: expert_parallel
# diagnosis: wrong_gradient


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
        return AllToAll.apply(grad, receives, sends) / dist.get_world_size(), None, None
