"""Weight decay is missing: before the step, AdamW multiplies each weight by 1 − lr · weight_decay.
"""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t)).sqrt() + self.eps
        w -= self.lr * (m / (1 - beta1**t)) / root
