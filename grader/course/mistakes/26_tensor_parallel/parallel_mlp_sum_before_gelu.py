"""The all-reduce comes before the GELU, where each rank has columns of its own and there is nothing
to add up. What the ranks have to add up is what their rows make of them, after the second product.
"""
# exercise: parallel_mlp
# diagnosis: size_mismatch
# or: REST = True

#: Whether what follows is added up once more.
REST = False


def parallel_mlp(x, w_in_shard, w_out_shard):
    inside = F.gelu(Leave.apply(Enter.apply(x) @ w_in_shard))
    return Leave.apply(inside @ w_out_shard) if REST else inside @ w_out_shard
