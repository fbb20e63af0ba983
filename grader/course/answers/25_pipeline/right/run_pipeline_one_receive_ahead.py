# exercise: run_pipeline
# diagnosis: none
from collections import deque

import torch
import torch.distributed as dist


class Stage:
    """A stage, with its neighbours; a receive is posted while the pass before it computes."""

    def __init__(self, module, shape):
        self.module, self.shape = module, shape
        self.rank, self.last = dist.get_rank(), dist.get_world_size() - 1
        self.dtype = next(module.parameters()).dtype
        self.arriving, self.sent = deque(), {}

    def post(self, what):
        peer = self.rank - 1 if what == "forward" else self.rank + 1
        if 0 <= peer <= self.last:
            tensor = torch.empty(self.shape, dtype=self.dtype)
            self.arriving.append((tensor, dist.irecv(tensor, peer)))
        else:
            self.arriving.append(None)

    def take(self):
        entry = self.arriving.popleft()
        if entry is None:
            return None
        entry[1].wait()
        return entry[0]

    def send(self, tensor, peer):
        if peer in self.sent:
            self.sent.pop(peer).wait()
        self.sent[peer] = dist.isend(tensor, peer)


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    me, kept, losses = Stage(stage, shape), {}, []
    me.post(order[0][0])
    for place, (what, i) in enumerate(order):
        if place + 1 < len(order):
            me.post(order[place + 1][0])
        came = me.take()
        if what == "forward":
            x = inputs[i] if me.rank == 0 else came.requires_grad_(True)
            y = stage(x)
            if me.rank == me.last:
                y = loss_fn(y, targets[i])
                losses.append(y.item())
                y = y / len(targets)
            else:
                me.send(y.detach(), me.rank + 1)
            kept[i] = (x, y)
        else:
            x, y = kept.pop(i)
            y.backward(came)
            if me.rank > 0:
                me.send(x.grad, me.rank - 1)
    for request in me.sent.values():
        request.wait()
    return sum(losses) / len(losses) if me.rank == me.last else None
