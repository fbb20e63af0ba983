"""f and g are in each other's places. Before the columns, forward passes x on, and backward adds
up; after the rows it is the other way round."""
# exercise: parallel_mlp
# diagnosis: wrong_value


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Enter.apply(F.gelu(Leave.apply(x) @ w_in_shard) @ w_out_shard)
