"""Each rank keeps its own gradients: no all_reduce was called. Is a hook registered for every
parameter, and does it start its bucket?
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def start(self):
        pass

    def ready(self, k):
        pass

    def finish_gradient_synchronization(self):
        pass
