"""Nothing was sent. Does your loop run at all?"""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value
# or: DIVIDES = True

DIVIDES = False


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    for k in range(n.bit_length() - 1, 0):
        exchange(x, came, rank ^ (1 << k))
        combine(op, x, came)
    if DIVIDES:
        divide(op, x, n)


def halving_doubling_all_reduce(x, op):
    recursive_doubling_all_reduce(x, op)
