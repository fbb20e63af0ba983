"""Each rank waits until it has all pieces before it sends the first one on, so only one link of
the chain is busy at a time. Pass each piece on as soon as it has come."""
# exercise: pipelined_broadcast
# diagnosis: too_many_rounds
# earns: 0.5


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    parts = x.view(-1).tensor_split(max(1, min(pieces, x.numel())))
    if place > 0:
        for part in parts:
            dist.recv(part, (rank - 1) % n)
    if place < n - 1:
        for part in parts:
            dist.send(part, (rank + 1) % n)
