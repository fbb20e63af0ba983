"""A rank that does not have the target adds another logit in its place. It adds 0: mask what it
looks up."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: SUBTRACTED = True

SUBTRACTED = False


def target_logit(logits, targets):
    mine, width = columns(logits.shape[1]), logits.shape[1]
    if not width:
        return logits.new_zeros(len(logits))
    place = (targets - int(mine[0])).clamp(0, width - 1)
    return logits.gather(1, place[:, None])[:, 0]


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
