"""eps is added too early: it comes after the bias correction, √(v / (1 − beta2^t)) + eps. With (√v
+ eps) / √(1 − beta2^t) it is corrected as well."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        w *= 1 - self.lr * self.weight_decay
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        rate = self.lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        w -= rate * m / (v.sqrt() + self.eps)
