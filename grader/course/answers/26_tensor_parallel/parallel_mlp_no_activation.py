"""The GELU between the two products is missing."""
# exercise: parallel_mlp
# diagnosis: wrong_value


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Leave.apply(Enter.apply(x) @ w_in_shard @ w_out_shard)
