# exercise: run_pipeline
# diagnosis: too_many_seconds
# hint: another order than the argument says
import torch
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    rank, n = dist.get_rank(), dist.get_world_size()
    dtype = next(stage.parameters()).dtype
    kept, sends, total, last_gradient = {}, {}, 0.0, None
    m = len(order) // 2
    order = [(what, i) for i in range(m) for what in ("forward", "backward")]
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = inputs[i]
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank == n - 1:
                y = loss_fn(y, targets[i]) / len(targets)
                total += y.item()
            else:
                sends[i] = dist.isend(y.detach(), rank + 1)
            kept[i] = x, y
        else:
            x, y = kept.pop(i)
            if rank == n - 1:
                y.backward()
            else:
                gradient = torch.empty(shape, dtype=dtype)
                dist.recv(gradient, rank + 1)
                sends.pop(i).wait()
                y.backward(gradient)
            if rank > 0:
                if last_gradient is not None:
                    last_gradient.wait()
                last_gradient = dist.isend(x.grad, rank - 1)
    if last_gradient is not None:
        last_gradient.wait()
    return total if rank == n - 1 else None
