# exercise: ulysses_attention
# diagnosis: wrong_shape
# hint: fourth all-to-all
import math

import torch
import torch.distributed as dist


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, tokens, dim = q.shape
    whole = []
    for x in (q, k, v):
        came = torch.empty_like(x)
        dist.all_to_all_single(came, x)
        came = came.view(n, heads // n, tokens, dim)
        whole.append(came.transpose(0, 1).reshape(heads // n, n * tokens, dim))
    q, k, v = whole
    scores = q @ k.mT / math.sqrt(dim)
    if causal:
        later = torch.ones(n * tokens, n * tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return scores.softmax(-1) @ v
