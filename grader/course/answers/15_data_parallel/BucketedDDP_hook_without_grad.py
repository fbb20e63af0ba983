"""There is no gradient yet where a bucket is flattened. A hook of register_hook is called before
p.grad is set, and one of register_post_accumulate_grad_hook after it.
"""
# exercise: BucketedDDP
# diagnosis: exception
# or: METHOD = "view"
# or: METHOD = "reshape"
# or: METHOD = "detach"


METHOD = "flatten"


class BucketedDDP(Bucketed):
    def watch(self, p, k):
        p.register_hook(lambda grad: self.ready(k))

    def flatten(self, bucket):
        return torch.cat([getattr(p.grad, METHOD)() for p in bucket])
