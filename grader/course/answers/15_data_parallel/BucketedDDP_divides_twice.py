"""The means are divided by the number of ranks once more. Divide once, either before the
all_reduce or after it.
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def flatten(self, bucket):
        return super().flatten(bucket) / dist.get_world_size()
