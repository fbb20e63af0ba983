# exercise: run_pipeline
# diagnosis: none
# autograd.grad returns all gradients of a pass, which stay in a variable until the next one.
import torch
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    rank, n = dist.get_rank(), dist.get_world_size()
    parameters = list(stage.parameters())
    dtype = parameters[0].dtype
    there, sends, losses = {}, {}, []
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = inputs[i]
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank < n - 1:
                sends["forward", i] = dist.isend(y.detach(), rank + 1)
            else:
                y = loss_fn(y, targets[i])
                losses.append(y.item())
            there[i] = x, y
        else:
            x, y = there.pop(i)
            if rank == n - 1:
                g = torch.tensor(1 / len(targets), dtype=dtype)
            else:
                g = torch.empty(shape, dtype=dtype)
                dist.recv(g, rank + 1)
                sends.pop(("forward", i)).wait()
            wanted = parameters if rank == 0 else [x, *parameters]
            got = torch.autograd.grad(y, wanted, g)
            if rank > 0:
                if ("backward", rank) in sends:
                    sends.pop(("backward", rank)).wait()
                sends["backward", rank] = dist.isend(got[0], rank - 1)
            for p, d in zip(parameters, got[-len(parameters) :], strict=True):
                p.grad = d if p.grad is None else p.grad + d
    for request in sends.values():
        request.wait()
    return sum(losses) / len(losses) if rank == n - 1 else None
