# exercise: ring_all_reduce_seconds
# diagnosis: wrong_type
# hint: .item()
import torch


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return torch.tensor(2 * (n - 1) * (alpha + nbytes / n * beta))
