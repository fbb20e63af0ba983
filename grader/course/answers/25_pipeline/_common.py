"""What the mistakes of this chapter share: a pipeline that is right, step by step, and an order."""
import torch
import torch.distributed as dist


def alternating(warm_up, micro_batches):
    """Return some forward passes, then one of each in turn, then the backward passes left."""
    warm_up = min(max(warm_up, 0), micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]


def all_forward_first(micro_batches):
    return [(what, i) for what in ("forward", "backward") for i in range(micro_batches)]


def first_input(x):
    return x


def received(x):
    return x.requires_grad_()


def loss_of(loss_fn, output, target, m):
    """Return the part of a micro-batch in the loss of which there are gradients."""
    return loss_fn(output, target) / m


def counted(total, loss, i, m):
    """Return the loss that is returned, after one more micro-batch."""
    return total + loss


def taken(kept, i):
    return kept.pop(i)


def go_backward(stage, y, gradient=None):
    y.backward(gradient)


def sent_back(x):
    return x.grad


def run(stage, order, inputs, targets, loss_fn, shape):
    rank, n = dist.get_rank(), dist.get_world_size()
    dtype = next(stage.parameters()).dtype
    kept, sends, total, last_gradient = {}, {}, 0.0, None
    for what, i in order:
        if what == "forward":
            if rank == 0:
                x = first_input(inputs[i])
            else:
                x = torch.empty(shape, dtype=dtype)
                dist.recv(x, rank - 1)
                x = received(x)
            y = stage(x)
            if rank == n - 1:
                y = loss_of(loss_fn, y, targets[i], len(targets))
                total = counted(total, y.item(), i, len(targets))
            else:
                sends[i] = dist.isend(y.detach(), rank + 1)
            kept[i] = x, y
        else:
            x, y = taken(kept, i)
            if rank == n - 1:
                go_backward(stage, y)
            else:
                gradient = torch.empty(shape, dtype=dtype)
                dist.recv(gradient, rank + 1)
                sends.pop(i).wait()
                go_backward(stage, y, gradient)
            if rank > 0:
                if last_gradient is not None:
                    last_gradient.wait()
                last_gradient = dist.isend(sent_back(x), rank - 1)
    if last_gradient is not None:
        last_gradient.wait()
    return total if rank == n - 1 else None
