# exercise: route
# diagnosis: wrong_value
# hint: along the tokens
import torch
import torch.nn.functional as F
def route(logits, k, capacity):
    top, idx = logits.topk(k, dim=1)
    counts = F.one_hot(idx, logits.shape[1]).sum(1).cumsum(0)   # tokens x experts
    full = counts.gather(1, idx) > capacity
    return idx.masked_fill(full, -1), top.softmax(0).masked_fill(full, 0)
