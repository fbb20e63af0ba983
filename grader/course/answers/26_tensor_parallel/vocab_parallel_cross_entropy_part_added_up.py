"""Part of the gradient is n times too large: an all-reduce that adds up gradients in backward,
like that of torch.distributed.nn.functional, expects a loss of each rank's own. Here all ranks
have one loss, and backward needs no messages."""
# exercise: vocab_parallel_cross_entropy
# diagnosis: wrong_gradient
# or: PART = "target"

PART = "sum"


def slope_of(exponentials, sums, hot):
    n, soft = dist.get_world_size(), exponentials / sums[:, None]
    return (n * soft - hot if PART == "sum" else soft - n * hot) / len(hot)


def vocab_parallel_cross_entropy(logits_shard, targets):
    return Loss.apply(logits_shard, targets)
