# exercise: ulysses_attention
# diagnosis: too_many_bytes
# hint: only the heads that it works on
# An all-gather, made of an all-to-all that sends every rank the same.
import torch
import torch.distributed as dist
import torch.nn.functional as F


def whole(x):
    n = dist.get_world_size()
    came = [torch.empty_like(x) for _ in range(n)]
    dist.all_to_all(came, [x] * n)
    return torch.cat(came, dim=1)


def ulysses_attention(q, k, v, causal):
    tokens, rank = q.shape[1], dist.get_rank()
    out = F.scaled_dot_product_attention(*map(whole, (q, k, v)), is_causal=causal)
    return out[:, rank * tokens : (rank + 1) * tokens]
