"""It is wrong on one rank as well, where nothing has to be added up: the GELU comes between the two
products, and not after them."""
# exercise: parallel_mlp
# diagnosis: wrong_value
# or: SHARED = False

#: Whether the gradients of x are added up.
SHARED = True


def parallel_mlp(x, w_in_shard, w_out_shard):
    x = Enter.apply(x) if SHARED else x
    return F.gelu(Leave.apply(x @ w_in_shard @ w_out_shard))
