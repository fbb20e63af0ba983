# exercise: ring_attention
# diagnosis: wrong_value
# hint: divided again after the next
import math
import torch, torch.distributed as dist


def ring_attention(q, k, v, causal):
    r, n = dist.get_rank(), dist.get_world_size()
    kv = torch.stack([k, v])
    m = torch.full((*q.shape[:2], 1), -math.inf, dtype=q.dtype)
    l = torch.zeros_like(m)
    out = torch.zeros_like(q)
    for step in range(n):
        owner = (r - step) % n
        reqs = []
        if step < n - 1:
            nxt = torch.empty_like(kv)
            reqs = [dist.isend(kv, (r + 1) % n), dist.irecv(nxt, (r - 1) % n)]
        if not causal or owner <= r:
            s = q @ kv[0].transpose(1, 2) / math.sqrt(q.shape[-1])
            if causal and owner == r:
                T = q.shape[1]
                s = s.masked_fill(torch.arange(T)[None] > torch.arange(T)[:, None], float("-inf"))
            new = torch.maximum(m, s.amax(-1, keepdim=True))
            w = (s - new).exp()
            l = l * (m - new).exp() + w.sum(-1, keepdim=True)
            out = (out * (m - new).exp() + w @ kv[1]) / l
            m = new
        for x in reqs:
            x.wait()
        if step < n - 1:
            kv = nxt
    return out
