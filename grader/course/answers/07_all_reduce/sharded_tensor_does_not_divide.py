"""n does not divide this length. Pad x up to a multiple of n, or split it unevenly with
tensor_split."""
# exercise: all_reduce_sharded
# diagnosis: exception


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    mine = x.new_empty(x.numel() // n)
    dist.reduce_scatter_tensor(mine, x.flatten(), op=R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    dist.all_gather_into_tensor(x.view(-1), mine)
