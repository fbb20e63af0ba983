# exercise: route
# diagnosis: wrong_value
# hint: a capacity of its own
import torch.nn.functional as F


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    wanted = F.one_hot(experts, logits.shape[1])
    place = wanted.cumsum(0).gather(2, experts[..., None])[..., 0]
    full = place > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
