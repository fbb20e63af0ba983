"""Right answers in pieces, of which a mistake gives some anew."""
import math

import torch
import torch.distributed as dist


def scores_of(q, k):
    return q @ k.mT / math.sqrt(q.shape[2])


def takes(owner, rank):
    """With a mask: whether a rank's queries see any key of this rank's block."""
    return owner <= rank


def hide(scores, rank, owner):
    """Hide later keys: queries are a rank's, keys their owner's."""
    i = rank * scores.shape[1] + torch.arange(scores.shape[1])[:, None]
    j = owner * scores.shape[1] + torch.arange(scores.shape[2])
    return scores.masked_fill(j > i, -math.inf)


def around(k, v):
    """Yield the rank whose block is here, its keys and its values, while they go round the ring."""
    rank, n = dist.get_rank(), dist.get_world_size()
    block = torch.stack([k, v])
    for s in range(n):
        came, requests = torch.empty_like(block), []
        if s < n - 1:
            requests = [dist.isend(block, (rank + 1) % n), dist.irecv(came, (rank - 1) % n)]
        yield (rank - s) % n, block[0], block[1]
        for request in requests:
            request.wait()
        block = came


def begin(q):
    """The largest score, the sum of weights and the weighted sum of v, before the first block."""
    m = q.new_full((*q.shape[:2], 1), -math.inf)
    return m, torch.zeros_like(m), torch.zeros_like(q)


def added(sums, scores, values):
    m, total, out = sums
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    weights, shrink = (scores - new).exp(), (m - new).exp()
    return new, shrink * total + weights.sum(-1, keepdim=True), shrink * out + weights @ values


def ring_attention(q, k, v, causal):
    rank, sums = dist.get_rank(), begin(q)
    for owner, keys, values in around(k, v):
        if not causal or takes(owner, rank):
            scores = scores_of(q, keys)
            sums = added(sums, hide(scores, rank, owner) if causal else scores, values)
    m, total, out = sums
    return out / total


def gathered(x):
    """All tokens of a rank's heads."""
    n = dist.get_world_size()
    heads, tokens, dim = x.shape
    came = torch.empty_like(x)
    dist.all_to_all_single(came, x)
    return came.view(n, heads // n, tokens, dim).transpose(0, 1).reshape(heads // n, -1, dim)


def softmax(scores):
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def attend(q, k, v, causal):
    scores = scores_of(q, k)
    return softmax(hide(scores, 0, 0) if causal else scores) @ v


def given_back(out, shape):
    """A rank's tokens of all heads."""
    n = dist.get_world_size()
    out = out.view(out.shape[0], n, -1, out.shape[2]).transpose(0, 1).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(shape)


def ulysses_attention(q, k, v, causal):
    return given_back(attend(*map(gathered, (q, k, v)), causal), q.shape)
