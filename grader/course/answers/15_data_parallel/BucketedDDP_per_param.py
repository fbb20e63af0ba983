# exercise: BucketedDDP
# diagnosis: buffer_race
# hint: the tensor belongs to the transport
# One all-reduce per parameter from hooks
import torch.distributed as dist
from torch import nn


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module, self.w = module, []
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, src=0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.hook)

    def hook(self, p):
        if any(p is other for other, _ in self.w):
            raise RuntimeError("synchronise first")
        self.w.append((p, dist.all_reduce(p.grad, async_op=True)))

    def forward(self, *a, **k):
        if self.training:
            for buffer in self.module.buffers():
                dist.broadcast(buffer, 0)
        return self.module(*a, **k)

    def finish_gradient_synchronization(self):
        for p, w in self.w:
            w.wait()
            p.grad /= dist.get_world_size()
        self.w = []
