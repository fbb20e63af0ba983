# exercise: expert_parallel
# diagnosis: none
import torch
import torch.distributed as dist


def exchange(pieces, shapes):
    """Send piece j to rank j, and receive tensors of these shapes; peers rotate."""
    rank, n = dist.get_rank(), dist.get_world_size()
    came = [pieces[rank].new_empty(shape) for shape in shapes]
    came[rank].copy_(pieces[rank])
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        requests = []
        if pieces[dst].numel():
            requests.append(dist.isend(pieces[dst].contiguous(), dst))
        if came[src].numel():
            requests.append(dist.irecv(came[src], src))
        for request in requests:
            request.wait()
    return came


class Travel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, out, into):
        ctx.out, ctx.into = out, into
        return torch.cat(exchange(rows.split(out), [(k, rows.shape[1]) for k in into]))

    @staticmethod
    def backward(ctx, grad):
        back = exchange(grad.split(ctx.into), [(k, grad.shape[1]) for k in ctx.out])
        return torch.cat(back), None, None


def expert_parallel(x, expert, experts):
    n, k = dist.get_world_size(), len(experts)
    tokens = [[t for t, e in enumerate(expert.tolist()) if e == which] for which in range(n * k)]
    by_rank = [torch.tensor([len(tokens[r * k + i]) for i in range(k)]) for r in range(n)]
    theirs = exchange(by_rank, [(k,)] * n)
    order = torch.tensor([t for group in tokens for t in group], dtype=torch.int64)
    out, into = [int(c.sum()) for c in by_rank], [int(c.sum()) for c in theirs]
    rows = Travel.apply(x[order], out, into)
    pieces = rows.split([c for counts in theirs for c in counts.tolist()])
    done = [experts[i % k](piece) for i, piece in enumerate(pieces)]
    home = Travel.apply(torch.cat(done), into, out)
    result = x.new_zeros(x.shape)
    return result.index_add(0, order, home)
