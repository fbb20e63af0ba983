"""Some targets are found on no rank: the comparison leaves out the first or the last column of a part.
A rank's targets are those from its first column up to its last, first + width − 1, both included."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: LEFT_OUT = "the last"
# or: LEFT_OUT = "the first"
# or: SUBTRACTED = True

LEFT_OUT = "the last of all"
SUBTRACTED = False


def one_hot(logits, targets):
    mine = columns(logits.shape[1]).clone()
    if LEFT_OUT == "the first":
        mine[:1] = -1
    elif LEFT_OUT == "the last" or dist.get_rank() == dist.get_world_size() - 1:
        mine[-1:] = -1
    return (targets[:, None] == mine).to(logits.dtype)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
