# exercise: all_reduce_sharded
# diagnosis: none
# Lists of rows of a padded matrix, asynchronous calls, ones for padding.
import torch
import torch.distributed as dist
import torch.nn.functional as F


def pad(flat, n):
    return F.pad(flat, (0, -len(flat) % n), value=1).view(n, -1 if len(flat) else 0)


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    divide = op == dist.ReduceOp.AVG
    rows = pad(x.reshape(-1), n)
    piece = torch.zeros_like(rows[0])
    chosen = dist.ReduceOp.SUM if divide else op
    dist.reduce_scatter(piece, list(rows.unbind()), op=chosen, async_op=True).wait()
    result = [torch.zeros_like(piece) for _ in range(n)]
    dist.all_gather(result, piece, async_op=True).wait()
    flat = torch.cat(result)[: x.numel()]
    if divide:
        flat = flat / n
    with torch.no_grad():
        x[...] = flat.reshape(x.shape)
