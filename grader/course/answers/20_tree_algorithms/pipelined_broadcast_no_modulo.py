"""To the right of the last rank is rank 0: take both neighbours modulo n."""
# exercise: pipelined_broadcast
# diagnosis: exception
# or: LEFT = False

LEFT = True


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    for piece in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n if LEFT else rank - 1)
        if place < n - 1:
            requests.append(dist.isend(piece, rank + 1))
    for request in requests:
        request.wait()
