"""It works where n divides the number of weights, and only there. Pad the flattened parameter with
zeros before it is cut, and cut the padding off after a gather."""
# exercise: FullySharded
# diagnosis: size_mismatch


class FullySharded(ShardedModule):
    def row(self, whole):
        return whole.flatten()
