# exercise: run_pipeline
# diagnosis: memory_limit
# hint: Receives are posted for several micro-batches ahead
# not: are still there
import torch
import torch.distributed as dist


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    r, n = dist.get_rank(), dist.get_world_size()
    first, last = r == 0, r == n - 1
    dtype = next(stage.parameters()).dtype
    m = sum(what == "forward" for what, _ in order)
    saved, pending, losses = {}, [], []

    def send(t, to):
        pending[:] = [q for q in pending if not q.is_completed()]
        pending.append(dist.isend(t, to))

    coming = {}
    if r > 0:
        for i in range(m):
            t = torch.empty(shape, dtype=dtype)
            coming[i] = t, dist.irecv(t, r - 1)
    for what, i in order:
        if what == "forward":
            if first:
                x = inputs[i]
            else:
                x, q = coming.pop(i)
                q.wait()
                x.requires_grad_()
            y = stage(x)
            if last:
                loss = loss_fn(y, targets[i])
                losses.append(loss.item())
                saved[i] = x, loss / m
            else:
                send(y.detach(), r + 1)
                saved[i] = x, y
        else:
            x, y = saved.pop(i)
            if last:
                y.backward()
            else:
                g = torch.empty(shape, dtype=dtype)
                dist.recv(g, r + 1)
                y.backward(g)
            if not first:
                send(x.grad, r - 1)
    for q in pending:
        q.wait()
    return sum(losses) / m if last else None
