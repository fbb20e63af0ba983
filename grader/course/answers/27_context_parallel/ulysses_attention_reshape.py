# exercise: ulysses_attention
# diagnosis: wrong_value
# hint: A reshape does not move anything, so
# Wrong layout: reshape without transpose
import torch
import torch.distributed as dist
import torch.nn.functional as F


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    h, t, d = q.shape
    W = []
    for x in (q, k, v):
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x.contiguous())
        W.append(y.reshape(h // n, n * t, d))
    o = (
        F.scaled_dot_product_attention(*(x[None] for x in W), is_causal=causal)[0]
        .reshape(h, t, d)
        .contiguous()
    )
    b = torch.empty_like(o)
    dist.all_to_all_single(b, o)
    return b
