"""The gradient of x is what this rank's own columns contribute, G_r W_rᵀ. The whole weight has
other columns, too: add up all ranks' parts, with an all_reduce in backward.
"""
# exercise: column_parallel
# diagnosis: wrong_gradient


def column_parallel(x, weight_shard):
    y = x @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1)
