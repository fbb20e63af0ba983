"""gloo's all_gather takes pieces of one size only. Where n does not divide the length, pad the
pieces to the length of the longest, and cut the padding off afterwards."""
# exercise: all_reduce_sharded
# diagnosis: exception


def all_reduce_sharded(x, op):
    pieces = list(x.flatten().tensor_split(dist.get_world_size()))
    mine = torch.empty_like(pieces[dist.get_rank()])
    dist.reduce_scatter(mine, pieces, R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= dist.get_world_size()
    dist.all_gather(pieces, mine)
    x.copy_(torch.cat(pieces).view_as(x))
