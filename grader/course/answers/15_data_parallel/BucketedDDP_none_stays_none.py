"""A rank that has not used a parameter still has None for its gradient, where others have used it.
Every rank gets the mean: give p.grad the mean itself, p.grad = mean.view_as(p).
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def put_back(self, bucket, flat):
        for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
            if p.grad is not None:
                p.grad.copy_(mean.view_as(p))
