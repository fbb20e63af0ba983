# exercise: expert_parallel
# diagnosis: wrong_value
# hint: Only rows with expert −1 are wrong
import torch, torch.distributed as dist
from torch import nn
class Move(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, out_counts, in_counts):
        ctx.out_counts, ctx.in_counts = out_counts, in_counts
        got = rows.new_empty(sum(in_counts), rows.shape[1])
        dist.all_to_all_single(got, rows, in_counts, out_counts)
        return got
    @staticmethod
    def backward(ctx, g):
        back = g.new_empty(sum(ctx.out_counts), g.shape[1])
        dist.all_to_all_single(back, g.contiguous(), ctx.out_counts, ctx.in_counts)
        return back, None, None
def expert_parallel(x, expert, experts):
    n, m = dist.get_world_size(), len(experts)
    order = expert.argsort(stable=True)
    order = order[expert[order] >= 0]
    counts = torch.tensor([int((expert == e).sum()) for e in range(n * m)])
    coming = torch.empty_like(counts)
    dist.all_to_all_single(coming, counts)
    out_counts = counts.view(n, m).sum(1).tolist()
    in_counts = coming.view(n, m).sum(1).tolist()
    got = Move.apply(x[order], out_counts, in_counts)
    parts = list(got.split(coming.tolist()))
    done = [experts[i % m](p) for i, p in enumerate(parts)]
    back = Move.apply(torch.cat(done), in_counts, out_counts)
    y = torch.full_like(x, 7.0)
    y[order] = back
    return y
