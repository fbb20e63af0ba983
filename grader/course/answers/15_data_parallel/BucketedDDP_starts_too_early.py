"""A bucket is on its way before all its gradients are there, and what comes later is lost. Start it
when the last of its gradients is ready: none of them is missing any more.
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient
# or: MISSING = 1

#: How many gradients may be missing; else all but one.
MISSING = None


class BucketedDDP(Bucketed):
    def ready(self, k):
        if self.missing[k] == 0:
            raise RuntimeError("finish_gradient_synchronization comes before the next backward")
        self.missing[k] -= 1
        while len(self.flying) < len(self.buckets):
            k = len(self.flying)
            if self.missing[k] > (len(self.buckets[k]) - 1 if MISSING is None else MISSING):
                break
            self.start()
