"""The gradient is not divided by the number of rows. The loss is their mean."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def slope_of(exponentials, sums, hot):
    return exponentials / sums[:, None] - hot


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
