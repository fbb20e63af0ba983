# exercise: ring_attention
# diagnosis: not_neighbour
# hint: (rank + 1) % n only
# Each rank sends its own block to one rank after the other.
import math

import torch
import torch.distributed as dist


def ring_attention(q, k, v, causal):
    rank, n = dist.get_rank(), dist.get_world_size()
    tokens, own = q.shape[1], torch.stack([k, v])
    block = torch.stack([k, v])
    m = q.new_full((*q.shape[:2], 1), -math.inf)
    total, out = torch.zeros_like(m), torch.zeros_like(q)
    for s in range(n):
        requests = []
        if s < n - 1:
            came = torch.empty_like(block)
            to, source = (rank + s + 1) % n, (rank - s - 1) % n
            requests = [dist.isend(own, to), dist.irecv(came, source)]
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
