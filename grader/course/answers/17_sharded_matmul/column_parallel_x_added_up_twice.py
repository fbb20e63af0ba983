"""The gradient of x is n times too large, as if what the ranks contribute were added up once too
often. One all_reduce of G_r W_rᵀ is enough.
"""
# exercise: column_parallel
# diagnosis: wrong_gradient
# not: gathered product


def column_parallel(x, weight_shard):
    y = Share.apply(Share.apply(x)) @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1)
