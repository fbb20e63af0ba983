"""A target is looked up in columns that this rank does not have. Clamp the place to the rank's own
columns, and mask what comes out; a rank without columns looks up nothing."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: exception
# or: SHIFTED = True
# or: GATHER = False

SHIFTED = False
GATHER = True


def target_logit(logits, targets):
    mine = columns(logits.shape[1])
    place = targets - (int(mine[0]) if SHIFTED and len(mine) else 0)
    if GATHER:
        return logits.gather(1, place[:, None])[:, 0]
    return logits[torch.arange(len(place)), place]


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
