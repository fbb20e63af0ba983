# exercise: ring_attention
# diagnosis: none
# Blocking calls: even ranks send first, odd ones receive first; rows are merged by a class.
import math

import torch
import torch.distributed as dist


class Rows:
    """The online softmax of some rows."""

    def __init__(self, q):
        self.q = q / math.sqrt(q.shape[-1])
        self.top = torch.full(q.shape[:2], -math.inf, dtype=q.dtype)
        self.total = torch.zeros(q.shape[:2], dtype=q.dtype)
        self.sums = torch.zeros_like(q)

    def add(self, k, v, mask):
        scores = (self.q.unsqueeze(2) * k.unsqueeze(1)).sum(-1)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        new = torch.maximum(self.top, scores.amax(-1))
        weights = torch.exp(scores - new[..., None])
        factor = torch.exp(self.top - new)
        self.total = self.total * factor + weights.sum(-1)
        self.sums = self.sums * factor[..., None] + torch.bmm(weights, v)
        self.top = new

    def result(self):
        return self.sums / self.total[..., None]


def ring_attention(q, k, v, causal):
    rank, n = dist.get_rank(), dist.get_world_size()
    rows, tokens = Rows(q), q.shape[1]
    diagonal = torch.ones(tokens, tokens).tril().bool()
    rows.add(k, v, diagonal if causal else None)
    for s in range(1, n):
        came = [torch.empty_like(k), torch.empty_like(v)]
        for mine, theirs in zip((k, v), came, strict=True):
            if rank % 2 == 0:
                dist.send(mine, (rank + 1) % n)
                dist.recv(theirs, (rank - 1) % n)
            else:
                dist.recv(theirs, (rank - 1) % n)
                dist.send(mine, (rank + 1) % n)
        k, v = came
        if not causal or rank >= s:
            rows.add(k, v, None)
    return rows.result()
