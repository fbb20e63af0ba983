"""The softmax of each block adds up to 1, and the results are added up, so the weights of a row
add up to more than 1. Divide once, at the end, by the sum over all blocks."""
# exercise: ring_attention
# diagnosis: wrong_value


def ring_attention(q, k, v, causal):
    rank, out = dist.get_rank(), torch.zeros_like(q)
    for owner, keys, values in around(k, v):
        if not causal or owner <= rank:
            scores = scores_of(q, keys)
            out += softmax(hide(scores, rank, owner) if causal else scores) @ values
    return out
