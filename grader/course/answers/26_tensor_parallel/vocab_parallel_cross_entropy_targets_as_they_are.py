"""Targets number the whole vocabulary. A rank looks them up in its own columns, so it has to
subtract the number of its first column."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: MASKED = False
# or: SUBTRACTED = True
# or: MASKED = False; SUBTRACTED = True

MASKED = True
SUBTRACTED = False


def one_hot(logits, targets):
    width = logits.shape[1]
    place = targets if MASKED else targets.clamp(max=max(width - 1, 0))
    return (place[:, None] == torch.arange(width)).to(logits.dtype)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
