# exercise: route
# diagnosis: wrong_value
# hint: ascending order
import torch.nn.functional as F


def route(logits, k, capacity):
    experts = logits.argsort(dim=1)[:, logits.shape[1] - k :]
    chosen = logits.gather(1, experts)
    weights = chosen.softmax(1)
    wanted = F.one_hot(experts.flatten(), logits.shape[1])
    place = wanted.cumsum(0).gather(1, experts.reshape(-1, 1)).view_as(experts)
    full = place > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
