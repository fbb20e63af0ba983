"""n does not divide this length. Pad x up to a multiple of n, or split it unevenly with
tensor_split."""
# exercise: all_reduce_sharded
# diagnosis: exception
# or: ROUNDED = True

ROUNDED = False


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    rows = x.view(n, x.numel() // n if ROUNDED else -1)
    mine = torch.empty_like(rows[0])
    dist.reduce_scatter(mine, list(rows.clone()), R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    dist.all_gather(list(rows), mine)
