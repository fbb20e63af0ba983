"""Keys of one rank meet the values of another. The k and the v of a rank travel together: weights
that come from its keys are for its values."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: TRAVELS = "v"

TRAVELS = "k"


def ring_attention(q, k, v, causal):
    rank, sums = dist.get_rank(), begin(q)
    for owner, keys, values in around(k, v):
        if not causal or owner <= rank:
            scores = scores_of(q, keys if TRAVELS == "k" else k)
            scores = hide(scores, rank, owner) if causal else scores
            sums = added(sums, scores, v if TRAVELS == "k" else values)
    m, total, out = sums
    return out / total
