"""Small parameters, of up to 128 elements, have begun as each rank's own. They are not cut, but
broadcast like all others: rank 0's count."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def broadcast(self, p):
        if self.is_sharded(p):
            super().broadcast(p)
