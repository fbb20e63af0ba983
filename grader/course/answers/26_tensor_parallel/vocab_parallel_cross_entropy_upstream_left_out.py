"""backward leaves out the gradient that comes in: multiply by it. The loss may be a part of a
larger sum."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def gradient(grad, slope):
    return slope


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
