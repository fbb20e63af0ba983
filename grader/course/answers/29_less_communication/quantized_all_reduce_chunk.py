"""Pieces of ⌈len/n⌉ numbers, as chunk and split cut them, may be fewer than n, and here they are: use
tensor_split(n), which always gives n, some of them empty if it must be."""
# exercise: quantized_all_reduce
# diagnosis: exception
# or: LISTED = False

LISTED = True


def cut(x):
    chunks = x.view(-1).chunk(dist.get_world_size())
    return list(chunks) if LISTED else chunks
