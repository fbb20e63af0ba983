"""A rank's first column is not always rank · width: where n does not divide the vocabulary, the
first ranks have one column more. torch.arange(V).tensor_split(n) says which columns each rank has.
"""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_value
# or: WIDTH = "rounded down"
# or: WIDTH = "rounded up"
# or: SUBTRACTED = True
# or: WIDTH = "rounded down"; SUBTRACTED = True
# or: WIDTH = "rounded up"; SUBTRACTED = True

WIDTH = "own"
SUBTRACTED = False


def columns(width):
    n, rank = dist.get_world_size(), dist.get_rank()
    vocabulary = int(added_up(torch.tensor(width)))
    step = {"own": width, "rounded down": vocabulary // n, "rounded up": -(-vocabulary // n)}
    return rank * step[WIDTH] + torch.arange(width)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
