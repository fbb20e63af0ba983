"""Every rank has only what its own part of the inner dimension contributes. The product is the sum
of these: all_reduce it.
"""
# exercise: row_parallel
# diagnosis: wrong_value


def row_parallel(x_shard, weight_shard):
    return x_shard @ weight_shard
