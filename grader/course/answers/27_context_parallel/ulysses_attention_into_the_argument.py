# exercise: ulysses_attention
# diagnosis: input_changed
# hint: belong to the caller
import math

import torch
import torch.distributed as dist


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, tokens, dim = q.shape
    whole = []
    for x in (q, k, v):
        sent = x.clone()
        dist.all_to_all_single(x, sent)
        came = x.view(n, heads // n, tokens, dim)
        whole.append(came.transpose(0, 1).reshape(heads // n, n * tokens, dim))
    q, k, v = whole
    scores = q @ k.mT / math.sqrt(dim)
    if causal:
        later = torch.ones(n * tokens, n * tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    out = scores.softmax(-1) @ v
    out = out.view(heads // n, n, tokens, dim).transpose(0, 1).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(heads, tokens, dim)
