"""In a list, gloo takes tensors of one size only. dist.all_to_all_single takes a tensor and two
lists of counts, for rows that arrive and rows that leave."""
# exercise: expert_parallel
# diagnosis: exception


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        ctx.counts = sends, receives
        out = [rows.new_empty(count, *rows.shape[1:]) for count in receives]
        dist.all_to_all(out, list(rows.split(sends)))
        return torch.cat(out)

    @staticmethod
    def backward(ctx, grad):
        sends, receives = ctx.counts
        return AllToAll.apply(grad, receives, sends), None, None
