"""The gradient of x is n times too large: it is added up over ranks once too often. After one
all-reduce it is whole on every rank."""
# exercise: parallel_mlp
# diagnosis: wrong_gradient


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Leave.apply(F.gelu(Enter.apply(Enter.apply(x)) @ w_in_shard) @ w_out_shard)
