"""Each block is merged with the log-sum-exp of the first one. After a merge it is that of both,
log(exp(a) + exp(b)), or torch.logaddexp(a, b): keep it for the next."""
# exercise: ring_attention
# diagnosis: wrong_value


def ring_attention(q, k, v, causal):
    rank, out = dist.get_rank(), None
    for owner, keys, values in around(k, v):
        if not causal or owner <= rank:
            scores = scores_of(q, keys)
            scores = hide(scores, rank, owner) if causal else scores
            block, weight = softmax(scores) @ values, scores.logsumexp(-1, keepdim=True)
            if out is None:
                out, first = block, weight
            else:
                both = torch.logaddexp(first, weight)
                out = out * (first - both).exp() + block * (weight - both).exp()
    return out
