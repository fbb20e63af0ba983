"""What comes is combined with your chunk of another number. While you send chunk c, your left
neighbour sends you chunk c − 1: combine it with yours of that number. Begin with chunk (rank − 1) %
n, and the last to come is your own."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# alike: messages
# or: FIRST, FILL = -1, -1
# or: FIRST, FILL = -1, 2
# or: FIRST, FILL = 0, 2

#: What is added to the rank for the first chunk, and to rank − s for the one that is combined.
FIRST, FILL = -1, 1


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[(rank + FIRST) % n].clone()
    for s in range(2, n + 1):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        partial = merge(op, came, chunks[(rank - s + FILL) % n])
    return finished(partial, op)
