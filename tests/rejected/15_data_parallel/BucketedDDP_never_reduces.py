# exercise: BucketedDDP
# diagnosis: wrong_gradient
# hint: no all_reduce was called
# not: copied back
import torch.distributed as dist
from torch import nn


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        for parameter in module.parameters():
            dist.broadcast(parameter.data, 0)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        pass
