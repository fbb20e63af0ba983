"""The results of the blocks are averaged, but they do not weigh the same: the result of a block
counts with its sum of exp(score). So keep that sum with it, relative to a maximum that is common
to all blocks."""
# exercise: ring_attention
# diagnosis: wrong_value
# or: OVER_ALL = True

OVER_ALL = False


def ring_attention(q, k, v, causal):
    rank, results = dist.get_rank(), []
    for owner, keys, values in around(k, v):
        if not causal or owner <= rank:
            scores = scores_of(q, keys)
            results.append(softmax(hide(scores, rank, owner) if causal else scores) @ values)
    return sum(results) / (dist.get_world_size() if OVER_ALL else len(results))
