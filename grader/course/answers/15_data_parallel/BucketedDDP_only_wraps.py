"""Each rank has begun with its own weights. The constructor has to broadcast rank 0's."""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        pass
