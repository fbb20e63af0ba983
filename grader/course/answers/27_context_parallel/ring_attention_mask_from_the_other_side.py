"""The mask takes blocks for those of the wrong ranks. What comes from the left in step s is the
block of rank (rank − s) % n; if you receive from the right, it is that of rank (rank + s) % n."""
# exercise: ring_attention
# diagnosis: wrong_value
# alike: messages


def ring_attention(q, k, v, causal):
    rank, n, sums = dist.get_rank(), dist.get_world_size(), begin(q)
    for s, (_, keys, values) in enumerate(around(k, v)):
        owner = (rank + s) % n
        if not causal or owner <= rank:
            scores = scores_of(q, keys)
            sums = added(sums, hide(scores, rank, owner) if causal else scores, values)
    m, total, out = sums
    return out / total
