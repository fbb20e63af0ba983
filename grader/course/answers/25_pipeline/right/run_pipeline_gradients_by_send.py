# exercise: run_pipeline
# diagnosis: none
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    """Only activations need isend: their receiver may be sending a gradient."""
    rank, world = dist.get_rank(), dist.get_world_size()
    first, last = rank == 0, rank == world - 1
    like = next(stage.parameters())
    xs, ys, requests = {}, {}, {}
    for what, i in order:
        if what == "forward":
            xs[i] = inputs[i] if first else like.detach().new_empty(shape)
            if not first:
                dist.recv(xs[i], src=rank - 1)
                xs[i].requires_grad = True
            out = stage(xs[i])
            ys[i] = loss_fn(out, targets[i]) if last else out
            if not last:
                requests[i] = dist.isend(out.detach().clone(), dst=rank + 1)
            del out
        elif last:
            (ys[i] / len(targets)).backward()
            ys[i] = ys[i].item()
        else:
            gradient = like.detach().new_empty(shape)
            dist.recv(gradient, src=rank + 1)
            requests.pop(i).wait()
            ys.pop(i).backward(gradient)
        if what == "backward":
            x = xs.pop(i)
            if not first:
                dist.send(x.grad, dst=rank - 1)
    if not last:
        return None
    return sum(ys.values()) / len(ys)
