"""Every rank has its own loss, of its own columns alone. The sum of the exponentials and the
target's logit have to be added up over ranks."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: MAXIMUM = "of all"
# or: SUBTRACTED = True
# or: MAXIMUM = "of all"; SUBTRACTED = True

MAXIMUM = "own"
SUBTRACTED = False


def largest(logits):
    lowest = logits.new_full((len(logits), 1), -torch.inf)
    top = torch.cat([logits, lowest], 1).amax(1)
    if MAXIMUM == "of all":
        dist.all_reduce(top, dist.ReduceOp.MAX)
    return top


def total(x):
    return x


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
