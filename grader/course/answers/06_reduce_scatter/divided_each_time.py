"""The division happens again and again on the way, so what came first is divided most often. Let
sums travel, and divide by n once, at the end."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# or: HALVES = True

HALVES = False


def divided(total, op):
    return total / (2 if HALVES else dist.get_world_size()) if op == R.AVG else total


def reduce_scatter(chunks, op):
    total = chunks[dist.get_rank()].clone()
    for came in arrivals(chunks):
        total = divided(merge(op, total, came), op)
    return total


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank - 1].clone()
    for s in range(2, n + 1):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        partial = divided(merge(op, came, chunks[(rank - s) % n]), op)
    return partial
