# exercise: ring_attention
# diagnosis: wrong_value
# hint: a weight of 1
import math
import torch, torch.distributed as dist


def ring_attention(q, k, v, causal):
    r, n = dist.get_rank(), dist.get_world_size()
    kv = torch.stack([k, v])
    out = lse = None
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
                s = s * torch.ones(T, T, dtype=s.dtype).tril()
            l = s.logsumexp(-1, keepdim=True)
            o = s.softmax(-1) @ kv[1]
            if out is None:
                out, lse = o, l
            else:
                new = torch.logaddexp(lse, l)
                out = out * (lse - new).exp() + o * (l - new).exp()
                lse = new
        for x in reqs:
            x.wait()
        if step < n - 1:
            kv = nxt
    return out
