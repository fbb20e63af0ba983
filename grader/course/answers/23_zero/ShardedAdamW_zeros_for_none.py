"""A gradient that is None on all ranks is not a gradient of zeros: the parameter does not change
in this step, by decay or otherwise, and its momentum does not either."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def have_gradients(self):
        return set(self.params)
