"""It works where n divides the number of weights, and only there. Pad the flattened parameter with
zeros before it is cut, and after a gather cut the padding off the same end."""
# exercise: FullySharded
# diagnosis: size_mismatch


class FullySharded(ShardedModule):
    def row(self, whole):
        return whole.flatten()
