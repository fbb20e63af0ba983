"""The rank that adds up a chunk has left out its own part: begin with that, and add what comes."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value


def quantized_all_reduce(x):
    chunks = cut(x)
    handed_out(summed(chunks) - chunks[dist.get_rank()], chunks)
