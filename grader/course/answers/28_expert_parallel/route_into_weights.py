# exercise: route
# diagnosis: exception
# hint: masked_fill without an underscore
# or: EXPERTS = True
import torch.nn.functional as F

EXPERTS = False


def place_of(experts, number):
    wanted = F.one_hot(experts.flatten(), number)
    return wanted.cumsum(0).gather(1, experts.reshape(-1, 1)).view_as(experts)


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    full = place_of(experts, logits.shape[1]) > capacity
    if EXPERTS:
        experts[full] = -1
        return experts, weights.masked_fill(full, 0)
    weights[full] = 0
    return experts.masked_fill(full, -1), weights
