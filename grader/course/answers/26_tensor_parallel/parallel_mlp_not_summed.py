"""Every rank returns only what its own rows contribute. The result is the sum of these over ranks:
one all-reduce, in forward."""
# exercise: parallel_mlp
# diagnosis: wrong_value
# or: WHOLE_X = False

WHOLE_X = True


def parallel_mlp(x, w_in_shard, w_out_shard):
    x = Enter.apply(x) if WHOLE_X else x
    return F.gelu(x @ w_in_shard) @ w_out_shard
