# exercise: ulysses_attention
# diagnosis: none
# q, k and v travel in one call.
import math

import torch
import torch.distributed as dist


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, tokens, dim = q.shape
    g = heads // n
    sent = torch.stack([q, k, v]).view(3, n, g, tokens, dim).permute(1, 0, 2, 3, 4).contiguous()
    came = torch.empty_like(sent)
    dist.all_to_all_single(came, sent)
    q, k, v = came.permute(1, 2, 0, 3, 4).reshape(3, g, n * tokens, dim)
    scores = torch.einsum("hid,hjd->hij", q, k) / math.sqrt(dim)
    if causal:
        i = torch.arange(n * tokens)
        scores = scores.where(i[:, None] >= i, -math.inf)
    out = torch.einsum("hij,hjd->hid", torch.softmax(scores, -1), v)
    out = out.view(g, n, tokens, dim).permute(1, 0, 2, 3).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.flatten(0, 1)
