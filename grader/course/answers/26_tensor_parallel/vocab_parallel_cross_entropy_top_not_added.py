"""The largest logit is subtracted in the exponents and not added again to the logarithm: log Σ
exp(l) = m + log Σ exp(l − m)."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value


def loss_of(sums, top, hit):
    return (sums.log() - hit).mean()


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
