# exercise: TopKFeedback
# diagnosis: exception
# hint: kept in the class
import torch


class TopKFeedback:
    left = 0

    def __init__(self, k):
        self.k = k

    def compress(self, grad):
        whole = grad.flatten() + TopKFeedback.left
        indices = whole.abs().topk(self.k).indices
        values = whole[indices]
        whole[indices] = 0
        TopKFeedback.left = whole
        return indices, values
