"""The chain runs the other way: src sends to src − 1. It should send to src + 1, that rank to src
+ 2, and so on, modulo n."""
# exercise: pipelined_broadcast
# diagnosis: not_neighbour
# alike: messages


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (src - rank) % n
    requests = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank + 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank - 1) % n))
    for request in requests:
        request.wait()
