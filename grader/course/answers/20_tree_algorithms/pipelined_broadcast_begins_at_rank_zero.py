"""The chain begins at src, which receives nothing, and here it is rank 0 that receives nothing. Only
with src = 0 are these the same. Let the place decide who receives: (rank − src) % n > 0."""
# exercise: pipelined_broadcast
# diagnosis: deadlock
# or: BLOCKS = True

BLOCKS = False


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    sends = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if rank > 0:
            dist.recv(piece, rank - 1)
        if (rank - src) % n < n - 1 and BLOCKS:
            dist.send(piece, (rank + 1) % n)
        elif (rank - src) % n < n - 1:
            sends.append(dist.isend(piece, (rank + 1) % n))
    for send in sends:
        send.wait()
