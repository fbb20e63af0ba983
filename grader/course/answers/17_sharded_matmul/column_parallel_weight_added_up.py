"""The gradient of weight_shard is added up over ranks. No other rank has its columns: it is xᵀ times
the rank's own columns of the gradient, and only that of x is a sum over ranks."""
# exercise: column_parallel
# diagnosis: wrong_gradient


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ Share.apply(weight_shard)
    return join(y, widths_of(weight_shard), y.dim() - 1)
