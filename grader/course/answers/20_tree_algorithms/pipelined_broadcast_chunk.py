"""Pieces of ⌈len/k⌉ elements, as chunk and split cut them, may be fewer than k, and here they are: use
tensor_split(k), which always gives k."""
# exercise: pipelined_broadcast
# diagnosis: too_few_messages


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    for piece in x.view(-1).chunk(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()
