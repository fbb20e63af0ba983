# exercise: TopKFeedback
# diagnosis: none
import torch


class TopKFeedback:
    """Sorts by magnitude, returns a list, and keeps a float64 tensor of what is left."""

    def __init__(self, k: int):
        self.k = k
        self.rest = torch.zeros(1, dtype=torch.float64)

    def compress(self, grad: torch.Tensor):
        rest = self.rest + grad.detach().double().ravel()
        order = sorted(range(len(rest)), key=lambda i: -abs(rest[i].item()))
        chosen = torch.tensor(order[: self.k])
        values = rest[chosen].to(grad.dtype)
        rest[chosen] -= values.double()
        self.rest = rest
        return [chosen, values]
