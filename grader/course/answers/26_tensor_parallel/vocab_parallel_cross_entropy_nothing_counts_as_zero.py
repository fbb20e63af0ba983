"""A rank without columns takes part in the maximum with a number, such as 0, which is larger than
very negative logits. It has no largest logit: let it take part with −inf."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: SUBTRACTED = True

SUBTRACTED = False


def largest(logits):
    top = logits.amax(1) if logits.shape[1] else logits.new_zeros(len(logits))
    dist.all_reduce(top, dist.ReduceOp.MAX)
    return top


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
