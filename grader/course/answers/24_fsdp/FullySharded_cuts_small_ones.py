"""A small parameter is cut as well. Only parameters of more than 128 elements are held as shards:
p.numel() > 128."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def is_sharded(self, p):
        return p.numel() >= 100
