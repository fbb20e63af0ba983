"""The gradient is that of a softmax over the rank's own columns. Divide by the sum over all ranks.
"""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def slope_of(exponentials, sums, hot):
    return (exponentials / exponentials.sum(1, keepdim=True) - hot) / len(hot)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
