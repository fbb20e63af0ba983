"""Every rank has its own columns of the product and no others: gather them, and put them side by
side along the last dimension.
"""
# exercise: column_parallel
# diagnosis: wrong_shape
# or: SHARED = True


SHARED = False


def column_parallel(x, weight_shard):
    return (Share.apply(x) if SHARED else x) @ weight_shard
