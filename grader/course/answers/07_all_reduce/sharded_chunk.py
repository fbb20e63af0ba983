"""There are fewer pieces than ranks. chunk(n), or split with the size rounded up, makes at most
n, and for many lengths fewer: 9 elements for 4 ranks give 3. tensor_split(n) always gives n."""
# exercise: all_reduce_sharded
# diagnosis: exception
# or: PADDED = False
# or: PADDED = False; BY = "messages"
# or: PADDED = False; BY = "messages"; KIND = tuple

PADDED = True
BY = "collectives"
KIND = list


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = KIND(x.flatten().chunk(n))
    mine = torch.empty_like(pieces[0 if PADDED else rank])
    if PADDED:
        size = len(mine)
        pieces = [torch.cat([one, one.new_zeros(size - len(one))]) for one in pieces]
    if BY == "messages":
        mine = pieces[rank].clone()
        for _, came in exchanged(pieces.__getitem__, lambda _: mine):
            combine(op, mine, came)
    else:
        dist.reduce_scatter(mine, pieces, R.SUM if op == R.AVG else op)
    if op == R.AVG:
        mine /= n
    x.copy_(gathered(mine, x).view_as(x))
