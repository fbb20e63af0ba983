# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: memory_limit
import torch


def neighbours():
    return torch.ones(1 << 36)
