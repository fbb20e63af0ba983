# exercise: BucketedDDP
# diagnosis: wrong_gradient
# hint: Where a rank does not use a
# One all-reduce per parameter from hooks
import torch.distributed as dist
from torch import nn


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module, self.w = module, []
        for p in module.parameters():
            dist.broadcast(p.data, src=0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(
                    lambda p: self.w.append((p, dist.all_reduce(p.grad, async_op=True)))
                )

    def forward(self, *a, **k):
        return self.module(*a, **k)

    def finish_gradient_synchronization(self):
        for p, w in self.w:
            w.wait()
            p.grad /= dist.get_world_size()
        self.w = []
