# exercise: TopKFeedback
# diagnosis: wrong_value
# hint: the k smallest
import torch


class TopKFeedback:
    def __init__(self, k):
        self.k, self.left = k, None

    def compress(self, grad):
        flat = grad.flatten()
        whole = flat.clone() if self.left is None else self.left + flat
        indices = whole.abs().topk(self.k, largest=False).indices
        values = whole[indices]
        self.left = whole.clone()
        self.left[indices] = 0
        return indices, values
