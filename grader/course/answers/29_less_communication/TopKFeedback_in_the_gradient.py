# exercise: TopKFeedback
# diagnosis: input_changed
# hint: of a gradient are the gradient itself
import torch


class TopKFeedback:
    def __init__(self, k):
        self.k, self.left = k, None

    def compress(self, grad):
        flat = grad.flatten()
        whole = flat if self.left is None else flat.add_(self.left)
        indices = whole.abs().topk(self.k).indices
        values = whole[indices]
        self.left = whole.clone()
        self.left[indices] = 0
        return indices, values
