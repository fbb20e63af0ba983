"""The chain has an end: the rank before src passes nothing on. Here it sends to src, which has
everything."""
# exercise: pipelined_broadcast
# diagnosis: deadlock
# or: BLOCKS = True

BLOCKS = False


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if BLOCKS and n > 1:
            dist.send(piece, (rank + 1) % n)
        elif n > 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()
