"""The padding comes before the elements of x, but it is cut off as if it came after them. Put x
first: padded[: x.numel()] = x.flatten()."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[n * size - x.numel() :] = x.flatten()
    pieces = list(padded.tensor_split(n))
    mine = x.new_empty(size)
    dist.reduce_scatter(mine, pieces, R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    dist.all_gather(pieces, mine)
    x.copy_(padded[: x.numel()].view_as(x))
