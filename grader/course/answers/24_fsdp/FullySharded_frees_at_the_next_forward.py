"""After the step gathered weights are still there. Free a layer's as soon as backward has its
gradient."""
# exercise: FullySharded
# diagnosis: memory_limit


class FullySharded(ShardedModule):
    def free(self, shard):
        pass

    def forward(self, *inputs):
        self.gathered.clear()
        return super().forward(*inputs)
