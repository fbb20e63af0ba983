"""Each rank has begun with its own weights. Broadcast rank 0's before you cut them."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def broadcast(self, p):
        pass
