"""A parameter that was skipped counts its own steps: its bias correction is behind that of the
others by the steps in which it had no gradient."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    t = 0

    def step(self):
        self.t += 1
        super().step()

    def number(self, p):
        return self.t
