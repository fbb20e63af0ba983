# exercise: BucketedDDP
# diagnosis: wrong_gradient
# hint: a later one does not
import torch
import torch.distributed as dist
from torch import nn


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for index in reversed(range(len(sizes))):
        if not buckets or filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return buckets


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, 0)
        trained = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() * p.element_size() for p in trained]
        self.buckets = [[trained[i] for i in b] for b in assign_buckets(sizes, bucket_bytes)]
        for number, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(
                    lambda _, number=number: self._ready(number)
                )
        self._begin()

    def _begin(self):
        self.missing = [len(bucket) for bucket in self.buckets]
        self.flying = []

    def _ready(self, number):
        self.missing[number] -= 1
        while len(self.flying) < len(self.buckets) and self.missing[len(self.flying)] == 0:
            self._start()

    def _start(self):
        bucket = self.buckets[len(self.flying)]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([part.detach().flatten() for part in parts])
        self.flying.append((flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, *args, **kwargs):
        if self.training:
            for buffer in self.module.buffers():
                dist.broadcast(buffer, 0)
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        while len(self.flying) < len(self.buckets):
            self._start()
        for bucket, (flat, request) in zip(self.buckets, self.flying):
            request.wait()
            flat /= dist.get_world_size()
            for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                p.grad.copy_(mean.view_as(p))
