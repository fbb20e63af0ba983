# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: wrong_type
import torch


def who_am_i():
    return torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8)
