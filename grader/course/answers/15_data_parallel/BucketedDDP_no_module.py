"""BucketedDDP is an nn.Module: class BucketedDDP(nn.Module), with super().__init__() first, and
the wrapped module as an attribute.
"""
# exercise: BucketedDDP
# diagnosis: wrong_value


class BucketedDDP:
    def __init__(self, module, bucket_bytes):
        self.right = Bucketed(module, bucket_bytes)
        self.finish_gradient_synchronization = self.right.finish_gradient_synchronization

    def __call__(self, *args, **kwargs):
        return self.right(*args, **kwargs)

    def parameters(self):
        return self.right.parameters()
