# exercise: row_parallel
# diagnosis: wrong_value
# hint: all_reduce it
def row_parallel(x_shard, weight_shard):
    return x_shard @ weight_shard
