# exercise: run_pipeline
# diagnosis: deadlock
# hint: returned without receiving that
# not: Two neighbours send
import torch
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    dtype = next(stage.parameters()).dtype
    kept, sends, total = {}, {}, 0.0
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = inputs[i]
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank == last:
                y = loss_fn(y, targets[i]) / len(targets)
                total += y.item()
            else:
                sends[i] = dist.isend(y.detach(), rank + 1)
            kept[i] = x, y
        else:
            x, y = kept.pop(i)
            gradient = None
            if rank < last:
                gradient = torch.ones(shape, dtype=dtype)
                sends.pop(i).wait()
            y.backward(gradient)
            if rank > 0:
                dist.send(x.grad, rank - 1)
    return total if rank == last else None
