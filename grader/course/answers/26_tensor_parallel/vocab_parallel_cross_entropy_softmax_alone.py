"""The gradient is the softmax alone. Where a rank has the target's column, 1 is subtracted:
(softmax − one-hot) / rows."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def slope_of(exponentials, sums, hot):
    return exponentials / sums[:, None] / len(hot)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
