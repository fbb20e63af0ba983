"""A matrix is cut by whole rows: tensor_split, chunk and split cut along the first dimension. Flatten
it first, and the pieces differ by one element at most.
"""
# exercise: all_reduce_sharded
# diagnosis: too_many_bytes
# says: the point of this exercise
# earns: 0.5


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = [one.contiguous() for one in x.tensor_split(n)]
    mine = pieces[rank].clone()
    for _, came in exchanged(lambda other: pieces[other], lambda other: mine):
        combine(op, mine, came)
    if op == R.AVG:
        mine /= n
    for other, came in exchanged(lambda other: mine, lambda other: pieces[other]):
        pieces[other] = came
    pieces[rank] = mine
    x.copy_(torch.cat(pieces))
