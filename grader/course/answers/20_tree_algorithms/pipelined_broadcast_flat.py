"""src sends to every rank. In the chain it sends to src + 1 alone, that rank to src + 2, and so
on, modulo n."""
# exercise: pipelined_broadcast
# diagnosis: not_neighbour
# alike: messages
# earns: 0.5


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    for part in x.view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if rank == src:
            for step in range(1, n):
                dist.send(part, (src + step) % n)
        else:
            dist.recv(part, src)
