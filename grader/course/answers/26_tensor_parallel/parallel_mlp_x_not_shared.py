"""The gradient of x is what this rank's own columns contribute. x went into the columns of all
ranks: add up their parts, with an all-reduce in backward."""
# exercise: parallel_mlp
# diagnosis: wrong_gradient


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Leave.apply(F.gelu(x @ w_in_shard) @ w_out_shard)
