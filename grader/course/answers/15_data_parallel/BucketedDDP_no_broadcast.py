"""Each rank has begun with its own weights. The constructor has to broadcast rank 0's."""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def share(self):
        pass
