# exercise: route
# diagnosis: wrong_value
# hint: taken over what fits
import torch
import torch.nn.functional as F
def route(logits, k, capacity):
    top, idx = logits.topk(k, dim=1)
    place = F.one_hot(idx.flatten(), logits.shape[1]).cumsum(0).gather(1, idx.reshape(-1, 1)).view_as(idx)
    full = place > capacity
    return idx.masked_fill(full, -1), top.masked_fill(full, float("-inf")).softmax(1)
