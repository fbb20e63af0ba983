"""eps is added to the root, √v̂ + eps, not to what is under it."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        w *= 1 - self.lr * self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t) + self.eps).sqrt()
        w -= self.lr * (m / (1 - beta1**t)) / root
