"""The gradients are sums over the ranks: divide by the number of ranks, so that they are those of
the mean loss.
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def divided(self, flat):
        return flat
