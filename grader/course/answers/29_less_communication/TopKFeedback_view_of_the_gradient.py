"""flatten(), view and reshape(-1) of a gradient are the gradient itself, seen as one row: what is
added to them in place goes into grad. Write flat = flat + left, or clone() first.
"""
# exercise: TopKFeedback
# diagnosis: input_changed


class TopKFeedback:
    def __init__(self, k):
        self.k, self.left = k, None

    def compress(self, grad):
        flat = grad.flatten()
        if self.left is not None:
            flat += self.left
        indices = flat.abs().topk(self.k).indices
        values = flat[indices].clone()
        self.left = flat.clone()
        self.left[indices] = 0
        return indices, values
