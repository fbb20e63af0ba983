# exercise: all_reduce_rooted
# diagnosis: none
# Rank 0 takes whoever comes first; the answers go out as one batch.
import torch
import torch.distributed as dist


def all_reduce_rooted(x, op):
    n = dist.get_world_size()
    others = range(1, n)
    if dist.get_rank():
        dist.send(x, 0)
        (request,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, 0)])
        request.wait()
        return
    for _ in others:
        came = torch.empty_like(x)
        dist.recv(came)
        if op == dist.ReduceOp.MIN:
            x.clamp_(max=came)
        elif op == dist.ReduceOp.MAX:
            x.clamp_(min=came)
        elif op == dist.ReduceOp.PRODUCT:
            x.mul_(came)
        else:
            x.add_(came)
    if op == dist.ReduceOp.AVG:
        x.div_(n)
    if n > 1:
        for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, r) for r in others]):
            request.wait()
