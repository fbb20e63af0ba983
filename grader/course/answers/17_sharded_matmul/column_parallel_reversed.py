"""The columns of the last rank come first. In the whole weight, those of rank 0 do."""
# exercise: column_parallel
# diagnosis: wrong_value
# not: is it there on both
# or: SHARED = False


SHARED = True


def arrange(parts, lengths, dim):
    return side_by_side(parts[::-1], lengths[::-1], dim)


def column_parallel(x, weight_shard):
    y = (Share.apply(x) if SHARED else x) @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1, arrange)
