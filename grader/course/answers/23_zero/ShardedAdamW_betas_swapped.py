"""The betas are the other way round: the first belongs to m, the momentum, and the second to v,
the variance."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta2, beta1 = self.betas
        w *= 1 - self.lr * self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t)).sqrt() + self.eps
        w -= self.lr * (m / (1 - beta1**t)) / root
