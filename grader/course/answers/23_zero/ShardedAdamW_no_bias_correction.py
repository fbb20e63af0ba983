"""The bias correction is missing: divide m by 1 − beta1^t and v by 1 − beta2^t, where t is the
number of this step, from 1."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        w *= 1 - self.lr * self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        w -= self.lr * m / (v.sqrt() + self.eps)
