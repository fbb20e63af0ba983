"""Each rank keeps its own gradients of the small parameters, and their copies drift apart.
finish_gradient_synchronization has to average them."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def finish_gradient_synchronization(self):
        pass
