"""With AVG some pieces are divided by n twice, and others once. Divide a piece on the rank that has
reduced it, before it is handed out, and nowhere else.
"""
# exercise: all_reduce_sharded
# diagnosis: wrong_value
# or: TWICE = "its own"

#: Which pieces a rank divides once more.
TWICE = "those of others"


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    lengths = [len(piece) for piece in x.flatten().tensor_split(n)]
    mine = shared(x, op)
    if op == R.AVG:
        mine /= n
    pieces = list(gathered(mine, x).split(lengths if not EVEN else len(mine) or 1))
    for other, piece in enumerate(pieces):
        if op == R.AVG and (other == rank) == (TWICE == "its own"):
            piece /= n
    x.copy_(torch.cat(pieces).view_as(x))
