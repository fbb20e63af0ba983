# exercise: ring_attention
# diagnosis: buffer_race
# hint: still being sent
import math

import torch
import torch.distributed as dist


def ring_attention(q, k, v, causal):
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens, left, right = q.shape[1], (rank - 1) % n, (rank + 1) % n
    block = torch.stack([k, v])
    m = q.new_full((*q.shape[:2], 1), -math.inf)
    total, out = torch.zeros_like(m), torch.zeros_like(q)
    for s in range(n):
        requests = []
        if s < n - 1:
            came = block
            requests = [dist.isend(block, right), dist.irecv(came, left)]
        owner = (rank - s) % n
        if not causal or owner <= rank:
            scores = q @ block[0].mT / math.sqrt(q.shape[2])
            if causal and owner == rank:
                later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, -math.inf)
            new = torch.maximum(m, scores.amax(-1, keepdim=True))
            weights = (scores - new).exp()
            shrink = (m - new).exp()
            total = shrink * total + weights.sum(-1, keepdim=True)
            out = shrink * out + weights @ block[1]
            m = new
        for request in requests:
            request.wait()
        if s < n - 1:
            block = came
    return out / total
