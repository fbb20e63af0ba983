"""A gradient is n times too large: the gradient of the gathered product was added up over ranks.
Every rank computes the same loss, so each has the whole of that gradient already: in backward take
its own columns out of it, and send nothing.
"""
# exercise: column_parallel
# diagnosis: wrong_gradient
# not: once too often
# or: SHARED = False


SHARED = True


def column_parallel(x, weight_shard):
    y = (Share.apply(x) if SHARED else x) @ weight_shard
    whole = Join.apply(y, widths_of(weight_shard), y.dim() - 1, side_by_side)
    return Share.apply(whole)
