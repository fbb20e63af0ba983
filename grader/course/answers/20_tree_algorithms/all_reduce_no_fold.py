"""The number of ranks is not a power of two here, so some have no partner in an exchange: rank ^
step may not exist. Let the ranks beyond the largest power of two first give their x to another
rank, and get the result from it at the end."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: exception
# or: FAR = True

FAR = False


def steps_of(n):
    steps = [1 << k for k in range((n - 1).bit_length())]
    return steps[::-1] if FAR else steps


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    for step in steps_of(n):
        exchange(x, came, rank ^ step)
        combine(op, x, came)
    divide(op, x, n)


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, done = x.view(-1), []
    for step in steps_of(n):
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    divide(op, mine, n)
    for step, kept, given in reversed(done):
        exchange(kept, given, rank ^ step)
