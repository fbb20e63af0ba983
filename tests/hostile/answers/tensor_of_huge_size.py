# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: wrong_shape
import torch


def who_am_i():
    return torch.zeros(1, dtype=torch.int64).expand(1 << 40)
