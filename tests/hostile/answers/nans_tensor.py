# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: wrong_dtype
import torch


def who_am_i():
    return torch.full((2,), float("nan"))
