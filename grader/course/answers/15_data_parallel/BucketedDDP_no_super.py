"""BucketedDDP is an nn.Module: class BucketedDDP(nn.Module), with super().__init__() first, and
the wrapped module as an attribute.
"""
# exercise: BucketedDDP
# diagnosis: exception


class BucketedDDP(nn.Module):
    def __init__(self, module, bucket_bytes):
        self.module = module
