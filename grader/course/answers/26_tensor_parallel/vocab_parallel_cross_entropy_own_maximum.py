"""Each rank subtracts the largest of its own logits, and then adds up exponentials of different
scales. All ranks subtract the same number: all-reduce the largest with MAX first."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: EMPTY = 0.0
# or: SUBTRACTED = True
# or: EMPTY = 0.0; SUBTRACTED = True

SUBTRACTED = False

#: What a rank without columns takes for its largest.
EMPTY = -torch.inf


def largest(logits):
    lowest = logits.new_full((len(logits), 1), -torch.inf)
    return torch.cat([logits, lowest], 1).amax(1).nan_to_num(None, torch.inf, EMPTY)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
