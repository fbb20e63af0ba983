# exercise: TopKFeedback
# diagnosis: none
import torch


class TopKFeedback:
    """Everything that is not below the k-th largest magnitude is sent."""

    def __init__(self, k):
        self.k = k
        self.left = 0

    def compress(self, grad):
        whole = grad.view(-1) + self.left
        bar = whole.abs().sort(descending=True).values[self.k - 1]
        mask = whole.abs() >= bar
        if mask.sum() > self.k:  # equal ones: the first of them
            mask = torch.zeros_like(mask)
            mask[whole.abs().topk(self.k).indices] = True
        self.left = torch.where(mask, 0, whole)
        return mask.nonzero().flatten(), whole[mask]
