"""Each rank has begun with its own weights. Broadcast rank 0's before you cut them."""
# exercise: FullySharded
# diagnosis: wrong_value
# or: WITHOUT = "sharded"
# or: WITHOUT = "small"

WITHOUT = "all"


class FullySharded(ShardedModule):
    def broadcast(self, p):
        if WITHOUT != "all" and self.is_sharded(p) != (WITHOUT == "sharded"):
            super().broadcast(p)
