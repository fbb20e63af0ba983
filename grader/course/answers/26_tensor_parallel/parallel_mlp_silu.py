"""There is a SiLU between the two products, and it should be a GELU."""
# exercise: parallel_mlp
# diagnosis: wrong_value


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Leave.apply(F.silu(Enter.apply(x) @ w_in_shard) @ w_out_shard)
