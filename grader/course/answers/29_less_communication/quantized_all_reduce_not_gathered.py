"""Each rank has the sum of one chunk, and the other chunks are still its own. The sums have to go
to all ranks, quantized once more."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value


def quantized_all_reduce(x):
    chunks = cut(x)
    chunks[dist.get_rank()].copy_(summed(chunks))
