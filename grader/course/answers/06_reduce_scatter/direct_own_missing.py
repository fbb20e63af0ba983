"""Your own chunk is not in the result, but it counts like all the others."""
# exercise: reduce_scatter
# diagnosis: wrong_value
# or: ZEROS = True

ZEROS = False


def reduce_scatter(chunks, op):
    mine = chunks[dist.get_rank()]
    total = torch.zeros_like(mine) if ZEROS else None
    for came in arrivals(chunks):
        total = came if total is None else merge(op, total, came)
    return finished(mine.clone() if total is None else total, op)
