"""The last elements do not arrive: the length is not divisible by the number of pieces, and pieces
of equal size leave some over. x.view(-1).tensor_split(k) leaves none."""
# exercise: pipelined_broadcast
# diagnosis: wrong_value


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    k = max(1, min(pieces, x.numel()))
    size = x.numel() // k
    for i in range(k):
        piece = x.view(-1)[i * size : (i + 1) * size]
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()
