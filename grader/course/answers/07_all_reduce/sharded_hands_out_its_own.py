"""Each piece is right on the rank that reduces it; the other ranks have what that rank began with.
The second stage sends the piece of x: send the one that is reduced.
"""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    row = x.flatten().clone()
    pieces = list(row.tensor_split(n))
    total = pieces[rank].clone()
    for _, came in exchanged(lambda other: pieces[other], lambda other: total):
        combine(op, total, came)
    if op == R.AVG:
        total /= n
    for other, came in exchanged(lambda other: pieces[rank], lambda other: pieces[other]):
        pieces[other].copy_(came)
    pieces[rank].copy_(total)
    x.copy_(row.view_as(x))
