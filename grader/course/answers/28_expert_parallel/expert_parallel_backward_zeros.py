"""The gradient of x is zero everywhere: your backward sends the gradients back, and then does not
return what has arrived."""
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
        back = grad.new_empty(sum(sends), *grad.shape[1:])
        dist.all_to_all_single(back, grad.contiguous(), sends, receives)
        return torch.zeros_like(back), None, None
