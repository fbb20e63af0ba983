"""It is the gradient of weight_shard that is added up over ranks, and not that of x. All ranks use x,
so its gradient is the sum of what each contributes; weight_shard is this rank's alone, and so is its
gradient."""
# exercise: column_parallel
# diagnosis: wrong_gradient


def column_parallel(x, weight_shard):
    y = x @ Share.apply(weight_shard)
    return join(y, widths_of(weight_shard), y.dim() - 1)
