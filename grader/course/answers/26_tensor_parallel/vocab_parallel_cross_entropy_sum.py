"""The loss is summed over rows. It is their mean."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: BACKWARD = "of the sum"

BACKWARD = "of the mean"


def loss_of(sums, top, hit):
    return (sums.log() + top - hit).sum()


def gradient(grad, slope):
    return grad * slope * (len(slope) if BACKWARD == "of the sum" else 1)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
