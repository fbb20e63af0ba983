"""amax and max have no result for an empty row, and some ranks have no columns: let them take part
with −inf, for example by appending a column of it."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: exception
# or: CALL = "max"

CALL = "amax"


def largest(logits):
    top = logits.amax(1) if CALL == "amax" else logits.max(1).values
    dist.all_reduce(top, dist.ReduceOp.MAX)
    return top


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
