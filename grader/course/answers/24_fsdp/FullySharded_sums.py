"""The gradients are added up over the ranks, but not divided by n."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def average(self, total):
        return total
