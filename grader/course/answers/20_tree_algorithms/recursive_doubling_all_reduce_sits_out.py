"""A rank whose partner does not exist sits the exchange out, and what it should have got is
missing from its result. Before the exchanges, fold the ranks beyond the largest power of two into
others."""
# exercise: recursive_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True

FAR = False


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    steps = [1 << k for k in range((n - 1).bit_length())]
    for step in steps[::-1] if FAR else steps:
        if rank ^ step < n:
            exchange(x, came, rank ^ step)
            combine(op, x, came)
    divide(op, x, n)
