"""A query does not see its own token: the mask hides keys of later tokens alone. Hide where the key's
place is greater than the query's, and not where they are equal."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: NOTHING = math.nan

#: What a query gets that sees no key at all.
NOTHING = 0.0


def hide(scores, rank, owner):
    i = rank * scores.shape[1] + torch.arange(scores.shape[1])[:, None]
    j = owner * scores.shape[1] + torch.arange(scores.shape[2])
    return scores.masked_fill(j >= i, -math.inf)


def added(sums, scores, values):
    m, total, out = sums
    new = torch.maximum(m, scores.amax(-1, keepdim=True)).clamp(min=-1e30)
    weights, shrink = (scores - new).exp(), (m - new).exp()
    return new, shrink * total + weights.sum(-1, keepdim=True), shrink * out + weights @ values


def ring_attention(q, k, v, causal):
    rank, sums = dist.get_rank(), begin(q)
    for owner, keys, values in around(k, v):
        if not causal or takes(owner, rank):
            scores = scores_of(q, keys)
            sums = added(sums, hide(scores, rank, owner) if causal else scores, values)
    _, total, out = sums
    return torch.where(total > 0, out / total, NOTHING)
