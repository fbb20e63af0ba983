"""The last block to arrive, your right neighbour's, is missing: there are n blocks to add, your
own and the n − 1 that come."""
# exercise: ring_attention
# diagnosis: wrong_value
# alike: messages
# or: ALONE = False

ALONE = True


def ring_attention(q, k, v, causal):
    rank, n, sums = dist.get_rank(), dist.get_world_size(), begin(q)
    for s, (owner, keys, values) in enumerate(around(k, v)):
        if s == n - 1 and (n > 1 or not ALONE):
            continue
        if not causal or owner <= rank:
            scores = scores_of(q, keys)
            sums = added(sums, hide(scores, rank, owner) if causal else scores, values)
    m, total, out = sums
    return out / total
