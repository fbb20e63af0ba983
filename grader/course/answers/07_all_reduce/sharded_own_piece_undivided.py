"""With AVG your own piece is the undivided sum, and the others are right: each rank divides what it
gets, and not the piece that it has reduced. Divide a piece on the rank that reduces it, before it
is handed out."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    lengths = [len(piece) for piece in cut(x)]
    mine = shared(x, op)
    pieces = list(gathered(mine, x).split([min(k, x.numel()) for k in lengths] if not EVEN else len(mine) or 1))
    for other, piece in enumerate(pieces):
        if op == R.AVG and other != rank:
            piece /= n
    x.copy_(torch.cat(pieces).view_as(x))
