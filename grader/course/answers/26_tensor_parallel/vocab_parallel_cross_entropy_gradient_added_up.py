"""The gradient is n times too large: a gradient has been added up over ranks. Every rank computes
the same loss, so backward needs no messages."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def gradient(grad, slope):
    return added_up(grad) * slope


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
