# exercise: step_flops
# diagnosis: wrong_type
# hint: A count is a whole number
import torch


def step_flops(tokens, params):
    return torch.tensor(float(tokens)) * params * 6
