# exercise: TopKFeedback
# diagnosis: wrong_dtype
# hint: First the indices
import torch
class TopKFeedback:
    def __init__(self, k):
        self.k = k
        self.rest = None
    def compress(self, grad):
        g = grad.reshape(-1).clone()
        if self.rest is not None:
            g += self.rest
        _, idx = torch.topk(g.abs(), self.k)
        vals = g[idx].clone()
        g[idx] = 0
        self.rest = g
        return vals, idx
