# exercise: expert_parallel
# diagnosis: wrong_value
# hint: its own experts for its own tokens
import torch


def expert_parallel(x, expert, experts):
    result = torch.zeros_like(x)
    for e, network in enumerate(experts):
        at = ((expert >= 0) & (expert % len(experts) == e)).nonzero().flatten()
        result = result.index_copy(0, at, network(x[at]))
    return result
