"""Each rank cuts its shards out of its own weights, and the small parameters alone are rank 0's.
Broadcast every parameter before you cut any."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def broadcast(self, p):
        if not self.is_sharded(p):
            super().broadcast(p)
