""".float() makes float32 of every tensor. The result has the dtype of what came in: leave the
conversion out."""
# exercise: row_parallel
# diagnosis: wrong_dtype


def row_parallel(x_shard, weight_shard):
    return Sum.apply((x_shard @ weight_shard).float())
