# exercise: BucketedDDP
# diagnosis: exception
# hint: a later one does not
import torch
import torch.distributed as dist
from torch import nn


def assign_buckets(sizes, cap_bytes):
    buckets, current, total = [], [], 0
    for i in reversed(range(len(sizes))):
        if current and total + sizes[i] > cap_bytes:
            buckets.append(current)
            current, total = [], 0
        current.append(i)
        total += sizes[i]
    if current:
        buckets.append(current)
    return buckets


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        with torch.no_grad():
            for t in [*module.parameters(), *module.buffers()]:
                dist.broadcast(t, 0)
        self.params = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() * p.element_size() for p in self.params]
        self.buckets = assign_buckets(sizes, bucket_bytes)
        for number, bucket in enumerate(self.buckets):
            for i in bucket:
                self.params[i].register_post_accumulate_grad_hook(
                    lambda p, k=number: self._ready(k)
                )
        self._begin()

    def _begin(self):
        self.waiting = [len(b) for b in self.buckets]
        self.started = {}

    def _ready(self, number):
        if number in self.started:
            raise RuntimeError("a second backward before finish_gradient_synchronization")
        self.waiting[number] -= 1
        while len(self.started) < len(self.buckets) and self.waiting[len(self.started)] == 0:
            self._start(len(self.started))

    def _start(self, number):
        grads = []
        for i in self.buckets[number]:
            p = self.params[i]
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            grads.append(p.grad.flatten())
        flat = torch.cat(grads)
        self.started[number] = (flat, dist.all_reduce(flat, async_op=True))

    def forward(self, *args, **kwargs):
        if self.training:
            for b in self.module.buffers():
                dist.broadcast(b, 0)
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        for number in range(len(self.buckets)):
            if number not in self.started:
                self._start(number)
        for number, (flat, request) in self.started.items():
            request.wait()
            flat /= dist.get_world_size()
            start = 0
            for i in self.buckets[number]:
                g = self.params[i].grad
                g.copy_(flat[start : start + g.numel()].view_as(g))
                start += g.numel()
        self.started = {}
