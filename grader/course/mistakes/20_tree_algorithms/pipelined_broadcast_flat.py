"""src sends to every rank. In the chain it sends to src + 1 alone, that rank to src + 2, and so
on, modulo n."""
# exercise: pipelined_broadcast
# diagnosis: not_neighbour
# earns: 0.5

def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for other in range(n):
            for part in pieces_of(x, pieces):
                if other != src:
                    dist.send(part, other)
    else:
        for part in pieces_of(x, pieces):
            dist.recv(part, src)
