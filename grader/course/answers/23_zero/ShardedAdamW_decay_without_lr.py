"""The weight is multiplied by 1 − weight_decay. The learning rate belongs to it: 1 − lr ·
weight_decay."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        w *= 1 - self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t)).sqrt() + self.eps
        w -= self.lr * (m / (1 - beta1**t)) / root
