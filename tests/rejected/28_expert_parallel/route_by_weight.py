# exercise: route
# diagnosis: wrong_value
# hint: given by weight
import torch
import torch.nn.functional as F


def route(logits, k, capacity):
    chosen, experts = logits.topk(k, dim=1)
    weights = chosen.softmax(1)
    wanted = F.one_hot(experts.flatten(), logits.shape[1])
    order = weights.flatten().argsort(descending=True)
    running = torch.empty_like(wanted)
    running[order] = wanted[order].cumsum(0)
    place = running.gather(1, experts.reshape(-1, 1)).view_as(experts)
    full = place > capacity
    return experts.masked_fill(full, -1), weights.masked_fill(full, 0)
