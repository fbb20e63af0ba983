"""The bias correction counts from 0 or from 2: in the first step t is 1."""
# exercise: ShardedAdamW
# diagnosis: wrong_value
# or: FIRST = 0

FIRST = 2


class ShardedAdamW(Sharded):
    def number(self, p):
        self.steps[p] += 1
        return self.steps[p] - 1 + FIRST
