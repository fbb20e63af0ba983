"""The chain ends at place n − 1, that is at rank (src − 1) % n, and here it ends at rank n − 1. Only
with src = 0 are these the same. Let the place decide who passes pieces on: place < n − 1."""
# exercise: pipelined_broadcast
# diagnosis: deadlock
# or: BLOCKS = True

BLOCKS = False


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    sends = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if rank < n - 1 and BLOCKS:
            dist.send(piece, rank + 1)
        elif rank < n - 1:
            sends.append(dist.isend(piece, rank + 1))
    for send in sends:
        send.wait()
