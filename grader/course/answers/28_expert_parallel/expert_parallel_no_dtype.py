"""Two dtypes meet there. Room for rows has the dtype of the rows: x.new_empty(shape) and
torch.empty_like(x) have it, torch.empty(shape) alone makes float32."""
# exercise: expert_parallel
# diagnosis: exception


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        ctx.counts = sends, receives
        out = torch.empty(sum(receives), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), receives, sends)
        return out

    @staticmethod
    def backward(ctx, grad):
        sends, receives = ctx.counts
        return AllToAll.apply(grad, receives, sends), None, None
