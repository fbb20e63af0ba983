"""Your buffer is as large as piece 0, and the pieces differ in size: what you receive and combine on
rank r is piece r, so the buffer is torch.empty_like of that one.
"""
# exercise: all_reduce_sharded
# diagnosis: size_mismatch


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(n) if other != rank]
    pieces = list(x.flatten().tensor_split(n))
    mine = pieces[rank].clone()
    buffer = torch.empty_like(pieces[0])
    sends = [dist.isend(pieces[other], other) for other in others]
    for other in others:
        dist.recv(buffer, other)
        combine(op, mine, buffer)
    for request in sends:
        request.wait()
    if op == R.AVG:
        mine /= n
    for other, came in exchanged(lambda other: mine, lambda other: pieces[other]):
        pieces[other] = came
    pieces[rank] = mine
    x.copy_(torch.cat(pieces).view_as(x))
