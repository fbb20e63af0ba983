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
        params = [p for p in module.parameters() if p.requires_grad]
        sizes = [p.numel() * p.element_size() for p in params]
        self.buckets = [[params[i] for i in b] for b in assign_buckets(sizes, bucket_bytes)]
        self.missing = [len(b) for b in self.buckets]
        self.in_flight = []
        for k, b in enumerate(self.buckets):
            for p in b:
                p.register_post_accumulate_grad_hook(lambda p, k=k: self._ready(k))

    def _ready(self, k):
        self.missing[k] -= 1
        while len(self.in_flight) < len(self.buckets) and self.missing[len(self.in_flight)] == 0:
            self._start()

    def _start(self):
        bucket = self.buckets[len(self.in_flight)]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in bucket])
        self.in_flight.append((flat, dist.all_reduce(flat, async_op=True)))

    def forward(self, *args, **kwargs):
        if self.training:
            for buffer in self.module.buffers():
                dist.broadcast(buffer, 0)
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        while len(self.in_flight) < len(self.buckets):
            self._start()
        for bucket, (flat, work) in zip(self.buckets, self.in_flight):
            work.wait()
            flat /= dist.get_world_size()
            for p, g in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = g.view_as(p)
        self.in_flight = []
