# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: wrong_type
import torch


def who_am_i():
    # each below what may be sent, together far above
    return [torch.zeros(1, dtype=torch.int64).expand(1 << 24) for _ in range(200)]
