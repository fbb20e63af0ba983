# exercise: BucketedDDP
# diagnosis: wrong_value
# hint: Buffers are not rank 0's
# or: AT_THE_START = True
import torch
import torch.distributed as dist
from torch import nn

AT_THE_START = False


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
        self.share()
        self.buckets = self.cut(self.trained(), bucket_bytes)
        for k, bucket in enumerate(self.buckets):
            for p in bucket:
                self.watch(p, k)
        self.begin()

    def share(self):
        for tensor in (*self.module.parameters(), *(self.module.buffers() if AT_THE_START else ())):
            dist.broadcast(tensor.data, 0)

    def trained(self):
        return [p for p in self.module.parameters() if p.requires_grad]

    def cut(self, trained, bucket_bytes):
        sizes = [p.numel() * p.element_size() for p in trained]
        return [[trained[i] for i in bucket] for bucket in assign_buckets(sizes, bucket_bytes)]

    def watch(self, p, k):
        p.register_post_accumulate_grad_hook(lambda _: self.ready(k))

    def begin(self):
        self.missing = [len(bucket) for bucket in self.buckets]
        self.flying = []

    def ready(self, k):
        if self.missing[k] == 0:
            raise RuntimeError("finish_gradient_synchronization comes before the next backward")
        self.missing[k] -= 1
        while len(self.flying) < len(self.buckets) and self.missing[len(self.flying)] == 0:
            self.start()

    def start(self):
        flat = self.flatten(self.buckets[len(self.flying)])
        self.flying.append((flat, dist.all_reduce(flat, async_op=True)))

    def flatten(self, bucket):
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        return torch.cat([grad.detach().flatten() for grad in grads])

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        while len(self.flying) < len(self.buckets):
            self.start()
        for bucket, (flat, request) in zip(self.buckets, self.flying):
            request.wait()
            self.put_back(bucket, self.divided(flat))
        self.begin()

    def divided(self, flat):
        return flat / dist.get_world_size()

    def put_back(self, bucket, flat):
        for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
            p.grad = mean.view_as(p)
