"""In the first stage you send every rank the piece that you keep. Rank j adds up piece j, so that is
what it needs of your x."""
# exercise: all_reduce_sharded
# diagnosis: size_mismatch


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = list(x.flatten().tensor_split(n))
    mine = pieces[rank].clone()
    for _, came in exchanged(lambda other: pieces[rank], lambda other: mine):
        combine(op, mine, came)
    if op == R.AVG:
        mine /= n
    for other, came in exchanged(lambda other: mine, lambda other: pieces[other]):
        pieces[other] = came
    pieces[rank] = mine
    x.copy_(torch.cat(pieces)[: x.numel()].view_as(x))

