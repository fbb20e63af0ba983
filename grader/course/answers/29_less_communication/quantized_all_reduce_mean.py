"""This is the mean, not the sum: leave out the division by n."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value


def quantized_all_reduce(x):
    chunks = cut(x)
    handed_out(summed(chunks) / dist.get_world_size(), chunks)
