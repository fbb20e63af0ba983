"""There are fewer elements than pieces here, and some messages are empty. Send at most one piece
for each element: k = max(1, min(pieces, x.numel()))."""
# exercise: pipelined_broadcast
# diagnosis: too_many_messages


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    for piece in x.view(-1).tensor_split(pieces):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()
