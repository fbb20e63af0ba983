"""Your own block is missing: no message brings it, but your queries see it like the others."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: ALONE = False

ALONE = True


def ring_attention(q, k, v, causal):
    rank, n, sums = dist.get_rank(), dist.get_world_size(), begin(q)
    for owner, keys, values in around(k, v):
        if owner == rank and (n > 1 or not ALONE):
            continue
        if not causal or owner < rank or n == 1:
            scores = scores_of(q, keys)
            sums = added(sums, hide(scores, rank, owner) if causal else scores, values)
    m, total, out = sums
    return out / total
