# exercise: run_pipeline
# diagnosis: none
import torch
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    """What a pass has made is sent together with the receive of what the next one needs."""
    rank, n = dist.get_rank(), dist.get_world_size()
    dtype = next(stage.parameters()).dtype
    passes = list(order)
    kept, total = {}, 0.0

    def source(place):
        if place == len(passes):
            return None
        peer = rank - 1 if passes[place][0] == "forward" else rank + 1
        return peer if 0 <= peer < n else None

    def exchange(place, made, to):
        ops, arriving = [], None
        if made is not None:
            ops.append(dist.P2POp(dist.isend, made, to))
        if source(place) is not None:
            arriving = torch.empty(shape, dtype=dtype)
            ops.append(dist.P2POp(dist.irecv, arriving, source(place)))
        for request in dist.batch_isend_irecv(ops) if ops else []:
            request.wait()
        return arriving

    came = exchange(0, None, None)
    for place, (what, i) in enumerate(passes, 1):
        made, to = None, None
        if what == "forward":
            x = inputs[i] if rank == 0 else came.requires_grad_()
            y = stage(x)
            if rank < n - 1:
                made, to = y.detach(), rank + 1
            else:
                y = loss_fn(y, targets[i])
                total += float(y)
            kept[i] = x, y
        else:
            x, y = kept.pop(i)
            torch.autograd.backward(y / len(targets) if rank == n - 1 else y, came)
            if rank > 0:
                made, to = x.grad, rank - 1
        came = exchange(place, made, to)
    return total / len(targets) if rank == n - 1 else None
