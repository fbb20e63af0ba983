# exercise: BucketedDDP
# diagnosis: none
"""One buffer a bucket, kept for all steps; gradients are divided before they are summed.

After a second backward the sums of both are sent once more.
"""

import torch
import torch.distributed as dist
from torch import nn


class _Bucket:
    def __init__(self, parameters):
        self.parameters = parameters
        self.flat = torch.zeros(sum(p.numel() for p in parameters), dtype=parameters[0].dtype)
        self.parts = [
            part.view(p.shape)
            for p, part in zip(parameters, self.flat.split([p.numel() for p in parameters]))
        ]
        self.request = None
        self.waiting = {id(p) for p in parameters}

    def start(self, n):
        for p, part in zip(self.parameters, self.parts):
            if p.grad is None:
                part.zero_()
            else:
                part.copy_(p.grad / n)
        self.request = dist.all_reduce(self.flat, async_op=True)

    def finish(self):
        self.request.wait()
        self.request = None
        for p, part in zip(self.parameters, self.parts):
            p.grad = part.clone()
        self.waiting = {id(p) for p in self.parameters}


class BucketedDDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int) -> None:
        super().__init__()
        self.module = module
        self.n = dist.get_world_size()
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor, src=0)
        self.again = False
        self.buckets, group, filled = [], [], 0
        for parameter in reversed(list(module.parameters())):
            if not parameter.requires_grad:
                continue
            if group and filled + parameter.nbytes > bucket_bytes:
                self.buckets.append(_Bucket(group))
                group, filled = [], 0
            group.append(parameter)
            filled += parameter.nbytes
            parameter.register_post_accumulate_grad_hook(self._hook)
        if group:
            self.buckets.append(_Bucket(group))

    def _hook(self, parameter):
        self.again |= not any(id(parameter) in bucket.waiting for bucket in self.buckets)
        for bucket in self.buckets:
            bucket.waiting.discard(id(parameter))
        for bucket in self.buckets:
            if bucket.waiting:
                break
            if bucket.request is None:
                bucket.start(self.n)

    def forward(self, *args, **kwargs):
        if self.training:
            for buffer in self.module.buffers():
                dist.broadcast(buffer, 0)
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self) -> None:
        for bucket in self.buckets:
            if bucket.request is None:
                bucket.start(self.n)
        for bucket in self.buckets if self.again else ():
            bucket.request.wait()
            bucket.start(self.n)
        for bucket in self.buckets:
            bucket.finish()
        self.again = False
