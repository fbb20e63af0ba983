"""The all-reduce comes before the GELU, where each rank has columns of its own and there is nothing
to add up. What the ranks have to add up is what their rows make of them, after the second product.
"""
# exercise: parallel_mlp
# diagnosis: size_mismatch
# or: REST = True
# or: SHARED = False
# or: REST = True; SHARED = False

#: Whether what follows is added up once more.
REST = False

#: Whether the gradients of x are added up.
SHARED = True


def parallel_mlp(x, w_in_shard, w_out_shard):
    x = Enter.apply(x) if SHARED else x
    inside = F.gelu(Leave.apply(x @ w_in_shard))
    return Leave.apply(inside @ w_out_shard) if REST else inside @ w_out_shard
