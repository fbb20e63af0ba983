"""The number of ranks is not a power of two here, so some have no partner in an exchange: rank ^
step may not exist. Let the ranks beyond the largest power of two first give their x to another
rank, and get the result from it at the end."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: exception
# or: FAR = True

FAR = False


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    doubling(x, op, rank, lambda step: rank ^ step, 1 << (n - 1).bit_length())


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    halving_and_doubling(x, op, rank, lambda step: rank ^ step, 1 << (n - 1).bit_length())
