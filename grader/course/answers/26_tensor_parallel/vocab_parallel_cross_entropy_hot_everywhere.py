"""Ranks that do not have the target also subtract 1 from the gradient, at the clamped place, which
is another column. Mask it there as in forward."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient


def target_logit(logits, targets):
    return (logits * (targets[:, None] == columns(logits.shape[1]))).sum(1)


def one_hot(logits, targets):
    mine, hot = columns(logits.shape[1]), torch.zeros_like(logits)
    if len(mine):
        place = (targets - int(mine[0])).clamp(0, len(mine) - 1)
        hot[torch.arange(len(hot)), place] = 1
    return hot


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
