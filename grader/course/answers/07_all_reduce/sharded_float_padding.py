"""Buffers for pieces and padding need x's dtype: x.new_zeros(size) keeps it."""
# exercise: all_reduce_sharded
# diagnosis: exception
# or: PADDED, LISTED = False, True
# or: PADDED, LISTED = True, False
# or: PADDED, LISTED = False, False

#: Whether the padded tensor is of the default dtype or the buffer for the piece, in a list or not.
PADDED, LISTED = True, True


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    size = -(-x.numel() // n)
    padded = torch.zeros(n * size) if PADDED else x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    mine = x.new_empty(size) if PADDED else torch.empty(size)
    if LISTED:
        dist.reduce_scatter(mine, list(padded.tensor_split(n)), R.SUM if op == R.AVG else op)
    else:
        dist.reduce_scatter_tensor(mine, padded, R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    x.copy_(gathered(mine, x).view_as(x))
