"""Each rank still has its own gradients. Does every bucket start an all_reduce, and is what
all_reduce has made of it copied back into every p.grad?
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def put_back(self, bucket, flat):
        for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):
            mean.view_as(p)
