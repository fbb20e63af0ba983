# exercise: TopKFeedback
# diagnosis: none
import torch


class TopKFeedback:
    """What is left is the difference between what was to be sent and what was."""

    def __init__(self, k):
        self.k = k
        self.memory = None

    def compress(self, grad):
        if self.memory is None:
            self.memory = torch.zeros_like(grad)
        corrected = (grad + self.memory).reshape(-1)
        indices = torch.topk(torch.abs(corrected), self.k)[1]
        values = corrected.gather(0, indices)
        sent = torch.zeros_like(corrected).scatter(0, indices, values)
        self.memory = (corrected - sent).reshape(grad.shape)
        return indices, values
