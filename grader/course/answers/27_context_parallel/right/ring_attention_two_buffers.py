# exercise: ring_attention
# diagnosis: none
# Two buffers that take turns, a batch of messages, sums in float64, and a ring to the left.
import math

import torch
import torch.distributed as dist


def ring_attention(q, k, v, causal):
    rank, n, dtype = dist.get_rank(), dist.get_world_size(), q.dtype
    tokens = q.shape[1]
    buffers = q.new_empty(2, 2, *q.shape)
    held = torch.stack([k, v])
    top = torch.full((*q.shape[:2], 1), -math.inf, dtype=torch.float64)
    total = torch.zeros(*q.shape[:2], 1, dtype=torch.float64)
    sums = torch.zeros(q.shape, dtype=torch.float64)
    mine = rank * tokens + torch.arange(tokens)[:, None]
    for s in range(n):
        if s:
            coming = buffers[s % 2]
            messages = [
                dist.P2POp(dist.isend, held, (rank - 1) % n),
                dist.P2POp(dist.irecv, coming, (rank + 1) % n),
            ]
            for request in dist.batch_isend_irecv(messages):
                request.wait()
            held = coming
        theirs = (rank + s) % n * tokens + torch.arange(tokens)
        scores = (q.double() @ held[0].double().transpose(-1, -2)) / math.sqrt(q.shape[-1])
        if causal:
            scores = torch.where(theirs <= mine, scores, -math.inf)
        new = torch.maximum(top, scores.max(-1, keepdim=True).values)
        weights = torch.exp(scores - new)
        shrink = torch.exp(top - new)
        total = total * shrink + weights.sum(-1, keepdim=True)
        sums = sums * shrink + weights @ held[1].double()
        top = new
    return (sums / total).to(dtype)
