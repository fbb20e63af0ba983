"""The pieces of the other ranks are right, and your own is as it was: what you have added up in
another tensor also belongs in x."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = cut(x)
    mine = pieces[rank].clone()
    for _, came in exchanged(lambda other: pieces[other], lambda other: mine):
        combine(op, mine, came)
    if op == R.AVG:
        mine /= n
    for other, came in exchanged(lambda other: mine, lambda other: pieces[other]):
        pieces[other] = came
    x.copy_(torch.cat(pieces)[: x.numel()].view_as(x))
