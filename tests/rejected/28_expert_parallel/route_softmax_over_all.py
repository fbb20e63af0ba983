# exercise: route
# diagnosis: wrong_value
# hint: taken over all experts
import torch.nn.functional as F


def route(logits, k, capacity):
    _chosen, experts = logits.topk(k, dim=1)
    weights = logits.softmax(1).gather(1, experts)
    wanted = F.one_hot(experts.flatten(), logits.shape[1])
    place = wanted.cumsum(0).gather(1, experts.reshape(-1, 1)).view_as(experts)
    full = place > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
