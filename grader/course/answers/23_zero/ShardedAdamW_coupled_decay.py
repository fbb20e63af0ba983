"""Here weight decay is added to the gradient, as in Adam with L2 regularisation. AdamW keeps the
two apart: it multiplies the weight by 1 − lr · weight_decay."""
# exercise: ShardedAdamW
# diagnosis: wrong_value


class ShardedAdamW(Sharded):
    def update(self, w, g, m, v, t):
        beta1, beta2 = self.betas
        g = g + self.weight_decay * w
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        root = (v / (1 - beta2**t)).sqrt() + self.eps
        w -= self.lr * (m / (1 - beta1**t)) / root
