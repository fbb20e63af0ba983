# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
import torch


def who_am_i():
    return torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)])
