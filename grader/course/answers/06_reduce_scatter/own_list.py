"""You combine your own chunks with one another. What belongs together is chunks[r] of every rank:
one chunk from each list."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value


def own_list(chunks, op):
    total = chunks[0].clone()
    for chunk in chunks[1:]:
        total = merge(op, total, chunk)
    return finished(total, op)


def reduce_scatter(chunks, op):
    return own_list(chunks, op)


def ring_reduce_scatter(chunks, op):
    return own_list(chunks, op)
