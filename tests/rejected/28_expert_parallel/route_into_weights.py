# exercise: route
# diagnosis: exception
# hint: masked_fill without an underscore
import torch
import torch.nn.functional as F
def route(logits, k, capacity):
    top, idx = logits.topk(k, dim=1)
    w = top.softmax(dim=1)
    place = F.one_hot(idx.flatten(), logits.shape[1]).cumsum(0).gather(1, idx.reshape(-1, 1)).view_as(idx)
    full = place > capacity
    w[full] = 0
    idx[full] = -1
    return idx, w
