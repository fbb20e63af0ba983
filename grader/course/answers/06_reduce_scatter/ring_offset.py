"""What comes is combined with your chunk of another number. While you send chunk c, your left
neighbour sends you chunk c − 1: combine it with yours of that number. Begin with chunk (rank − 1) %
n, and the last to come is your own."""
# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# alike: messages
# or: SEND, FILL = 0, -2
# or: SEND, FILL = 1, -1
# or: SEND, FILL = -1, -3
# or: SEND, FILL = 0, 1

#: What is added to rank − s for the chunk that is sent, and for the one that is filled.
SEND, FILL = -1, -1


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [chunk.clone() for chunk in chunks]
    for s in range(1, n):
        came = swap(parts[(rank - s + SEND) % n], (rank + 1) % n, (rank - 1) % n)
        mine = (rank - s + FILL) % n
        parts[mine] = merge(op, parts[mine], came)
    return finished(parts[rank], op)
