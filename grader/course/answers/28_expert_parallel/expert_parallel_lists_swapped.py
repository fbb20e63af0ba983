"""The two lists of counts are the wrong way round. all_to_all_single takes the split sizes of its
output first: how many rows come from each rank, and then how many go to each. On the way back, and
in backward, the two lists change places: as many gradients leave a rank as rows arrived at it."""
# exercise: expert_parallel
# diagnosis: exception
# or: IN_BACKWARD = False

IN_BACKWARD = True


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        ctx.counts = sends, receives
        out = rows.new_empty(sum(receives), *rows.shape[1:])
        splits = (receives, sends) if IN_BACKWARD else (sends, receives)
        dist.all_to_all_single(out, rows.contiguous(), *splits)
        return out

    @staticmethod
    def backward(ctx, grad):
        sends, receives = ctx.counts
        return AllToAll.apply(grad, sends, receives), None, None
