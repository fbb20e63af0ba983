"""With causal=True there are NaNs. Where a query sees no key of a block, the largest score is −∞,
and −∞ − (−∞) is not a number. Such a block has weight 0: leave out blocks of later ranks, and
begin with your own, in which every query sees itself."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: OWN_LAST = True

OWN_LAST = False


def added(sums, scores, values):
    m, total, out = sums
    top = scores.amax(-1, keepdim=True)
    new = torch.maximum(m, top)
    weights, factor, shrink = (scores - top).exp(), (top - new).exp(), (m - new).exp()
    total = shrink * total + factor * weights.sum(-1, keepdim=True)
    return new, total, shrink * out + factor * (weights @ values)


def ring_attention(q, k, v, causal):
    rank, sums = dist.get_rank(), begin(q)
    own, *others = around(k, v)
    for owner, keys, values in [*others, own] if OWN_LAST else [own, *others]:
        scores = scores_of(q, keys)
        sums = added(sums, hide(scores, rank, owner) if causal else scores, values)
    m, total, out = sums
    return out / total
