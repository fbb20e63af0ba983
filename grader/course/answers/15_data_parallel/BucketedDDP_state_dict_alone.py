"""state_dict() has no buffer that is registered with persistent=False, and such a one is not rank 0's
once the module is wrapped. parameters() and buffers() have them all.
"""
# exercise: BucketedDDP
# diagnosis: wrong_value


class BucketedDDP(Bucketed):
    def share(self):
        for tensor in self.module.state_dict().values():
            dist.broadcast(tensor, 0)
