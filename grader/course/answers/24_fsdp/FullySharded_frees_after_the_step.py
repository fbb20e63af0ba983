"""A rank has the whole weights of more than two layers at once. Gather a layer just before its own
forward, and again just before its own backward, and free it as soon as it has computed."""
# exercise: FullySharded
# diagnosis: memory_limit


class FullySharded(ShardedModule):
    def free(self, shard):
        pass

    def finish_gradient_synchronization(self):
        super().finish_gradient_synchronization()
        self.gathered.clear()
