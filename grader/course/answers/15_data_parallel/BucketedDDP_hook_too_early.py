"""All gradients are zero: what backward computes is not in the buckets. Is it in p.grad when a
bucket is flattened? A hook of register_hook is called before that, and one of
register_post_accumulate_grad_hook after it.
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def watch(self, p, k):
        p.register_hook(lambda grad: self.ready(k))
