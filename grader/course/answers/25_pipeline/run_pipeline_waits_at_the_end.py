# exercise: run_pipeline
# diagnosis: memory_limit
# hint: A request keeps its tensor
# earns: 0.5
import torch
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    rank, n = dist.get_rank(), dist.get_world_size()
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
                y.backward(gradient)
            if rank > 0:
                sends[-1 - i] = dist.isend(x.grad, rank - 1)
    for request in sends.values():
        request.wait()
    return total if rank == n - 1 else None
