# exercise: expert_parallel
# diagnosis: none
# Point-to-point in both directions
import torch
import torch.distributed as dist


def _swap(parts, sizes, width, like):
    n, r = dist.get_world_size(), dist.get_rank()
    got = [like.new_empty(k, width) for k in sizes]
    got[r].copy_(parts[r])
    ws = [dist.isend(parts[i].contiguous(), i) for i in range(n) if i != r and len(parts[i])]
    ws += [dist.irecv(got[i], i) for i in range(n) if i != r and sizes[i]]
    for w in ws:
        w.wait()
    return got


class _Move(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, out, inn):
        ctx.s = out, inn
        return torch.cat(_swap(rows.split(out), inn, rows.shape[1], rows))

    @staticmethod
    def backward(ctx, g):
        out, inn = ctx.s
        return torch.cat(_swap(g.split(inn), out, g.shape[1], g)), None, None


def expert_parallel(x, expert, experts):
    n, r, m = dist.get_world_size(), dist.get_rank(), len(experts)
    sel = [(expert == e).nonzero().flatten() for e in range(n * m)]
    order = torch.cat(sel)
    cnt = torch.tensor([len(s) for s in sel]).view(n, m)
    inc = torch.empty_like(cnt)
    ws = [dist.isend(cnt[i], i) for i in range(n) if i != r] + [
        dist.irecv(inc[i], i) for i in range(n) if i != r
    ]
    inc[r] = cnt[r]
    for w in ws:
        w.wait()
    o, i_ = cnt.sum(1).tolist(), inc.sum(1).tolist()
    arrived = _Move.apply(x[order], o, i_)
    pieces = list(arrived.split(inc.flatten().tolist()))
    done = [experts[k % m](p) if len(p) else p for k, p in enumerate(pieces)]
    back = _Move.apply(torch.cat(done), i_, o)
    return torch.zeros_like(x).index_add(0, order, back)
