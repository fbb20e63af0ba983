"""There is a piece more than there are ranks: n does not divide this length, and split(x.numel()
// n) leaves a remainder. Round up and pad, or cut with tensor_split(n)."""
# exercise: all_reduce_sharded
# diagnosis: exception


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    pieces = list(x.flatten().split(x.numel() // n))
    mine = torch.empty_like(pieces[0])
    dist.reduce_scatter(mine, pieces, R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    dist.all_gather(pieces, mine)
    x.copy_(torch.cat(pieces).view_as(x))
