"""The gradients are n times too large. Every rank computes the same loss, so each has the whole
gradient of the sum, and that is the gradient of every term: backward passes it on as it is. An
all_reduce in backward adds up n copies of it; that is what
torch.distributed.nn.functional.all_reduce does.
"""
# exercise: row_parallel
# diagnosis: wrong_gradient


def row_parallel(x_shard, weight_shard):
    return Share.apply(Sum.apply(x_shard @ weight_shard))
