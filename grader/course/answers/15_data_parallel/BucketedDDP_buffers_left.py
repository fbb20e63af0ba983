"""Buffers are not rank 0's, such as the running mean of a batch norm. Broadcast module.buffers()
when the module is wrapped, and in every forward while it trains: each rank's own batches change
them."""
# exercise: BucketedDDP
# diagnosis: wrong_value
# or: AT_THE_START = True

AT_THE_START = False


class BucketedDDP(Bucketed):
    def share(self):
        buffers = self.module.buffers() if AT_THE_START else ()
        for tensor in (*self.module.parameters(), *buffers):
            dist.broadcast(tensor.data, 0)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)
