"""The result is divided by the sum of weights after each block, and what has been divided is
divided again after the next. Divide once, at the end."""
# exercise: ring_attention
# diagnosis: wrong_value


def ring_attention(q, k, v, causal):
    rank, sums = dist.get_rank(), begin(q)
    for owner, keys, values in around(k, v):
        if not causal or owner <= rank:
            scores = scores_of(q, keys)
            m, total, out = added(sums, hide(scores, rank, owner) if causal else scores, values)
            sums = m, total, out / total
    return sums[2]
