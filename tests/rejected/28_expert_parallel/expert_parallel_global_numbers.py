# exercise: expert_parallel
# diagnosis: exception
# hint: the rank's own experts only
import torch


def expert_parallel(x, expert, experts):
    result = torch.zeros_like(x)
    for t, e in enumerate(expert.tolist()):
        if e >= 0:
            result[t] = experts[e](x[t])
    return result
