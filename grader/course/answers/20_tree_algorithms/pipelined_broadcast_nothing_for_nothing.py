"""Here x has no elements, and each link still carries one piece, an empty one: leave no message
out."""
# exercise: pipelined_broadcast
# diagnosis: too_few_messages


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    if x.numel() == 0:
        return
    for piece in x.view(-1).tensor_split(min(pieces, x.numel())):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()
