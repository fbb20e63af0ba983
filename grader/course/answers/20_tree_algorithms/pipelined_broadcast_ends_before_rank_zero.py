"""It goes wrong only with src = 0: the rank before src is (src − 1) % n, which is n − 1 then, and no
rank is −1. That rank is the end of the chain, and passes nothing on."""
# exercise: pipelined_broadcast
# diagnosis: deadlock
# or: BLOCKS = True

BLOCKS = False


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    sends = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if rank != src:
            dist.recv(piece, (rank - 1) % n)
        if n == 1 or rank == src - 1:
            continue
        if BLOCKS:
            dist.send(piece, (rank + 1) % n)
        else:
            sends.append(dist.isend(piece, (rank + 1) % n))
    for send in sends:
        send.wait()
