"""n.bit_length() is one more than the number of exchanges, so a rank has no partner in the last
one: the largest power of two up to n is 1 << (n.bit_length() - 1)."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: exception
# or: FAR = True

FAR = False


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    doubling(x, op, rank, lambda step: rank ^ step, 1 << n.bit_length())


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    halving_and_doubling(x, op, rank, lambda step: rank ^ step, 1 << n.bit_length())
