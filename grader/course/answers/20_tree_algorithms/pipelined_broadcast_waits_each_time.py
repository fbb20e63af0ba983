"""A rank receives a piece, sends it, and waits for that send before it receives the next one: it
never does both at once. Start the send with isend, and wait at the end."""
# exercise: pipelined_broadcast
# diagnosis: too_many_rounds
# earns: 0.5


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            dist.send(piece, (rank + 1) % n)
