"""The sign of the gradient is wrong: it is softmax − one-hot."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def slope_of(exponentials, sums, hot):
    return (hot - exponentials / sums[:, None]) / len(hot)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
