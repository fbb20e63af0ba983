# exercise: TopKFeedback
# diagnosis: exception
# hint: -
import torch


class TopKFeedback:
    def __init__(self, k):
        self.k, self.left = k, None

    def compress(self, grad):
        flat = grad
        whole = flat.clone() if self.left is None else self.left + flat
        indices = whole.abs().topk(self.k).indices
        values = whole[indices]
        self.left = whole.clone()
        self.left[indices] = 0
        return indices, values
