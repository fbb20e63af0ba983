"""You add up chunks of your left neighbour alone, which are of different numbers: every rank sends
its chunks as they are. What travels must be a partial result: combine what comes with your own
chunk of the same number, and send that in the next round."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# alike: messages
# or: FIRST = 0

FIRST = 1


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    for s in range(FIRST, n - 1 + FIRST):
        came = swap(chunks[(rank - s) % n], (rank + 1) % n, (rank - 1) % n)
        total = merge(op, total, came)
    return finished(total, op)
