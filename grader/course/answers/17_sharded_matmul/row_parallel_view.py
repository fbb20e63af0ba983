"""view needs a tensor that is contiguous in memory, and a slice, a transpose or a gradient often
is not: reshape and flatten make a copy where they have to.
"""
# exercise: row_parallel
# diagnosis: exception
# not: message needs


def row_parallel(x_shard, weight_shard):
    part = x_shard @ weight_shard
    flat = part.transpose(0, -1).view(-1)
    return Sum.apply(flat).view(part.transpose(0, -1).shape).transpose(0, -1)
