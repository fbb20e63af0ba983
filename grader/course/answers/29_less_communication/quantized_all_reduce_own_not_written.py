"""Each rank has the sums of the other chunks, and in the one that it adds up there are still its
own numbers. Write the sum there, too, as the others get it: q · scale."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value


def quantized_all_reduce(x):
    chunks = cut(x)
    own = chunks[dist.get_rank()].clone()
    handed_out(summed(chunks), chunks)
    chunks[dist.get_rank()].copy_(own)
