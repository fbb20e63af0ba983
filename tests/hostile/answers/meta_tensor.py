# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: wrong_type
import torch


def who_am_i():
    return torch.empty(2, dtype=torch.int64, device="meta")
