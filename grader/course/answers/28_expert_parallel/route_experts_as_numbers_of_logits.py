# exercise: route
# diagnosis: wrong_dtype
# hint: Experts are int64
import torch.nn.functional as F


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    wanted = F.one_hot(experts.flatten(), logits.shape[1])
    place = wanted.cumsum(0).gather(1, experts.reshape(-1, 1)).view_as(experts)
    full = place > capacity
    return experts.masked_fill(full, -1).to(logits.dtype), weights.masked_fill(full, 0)
