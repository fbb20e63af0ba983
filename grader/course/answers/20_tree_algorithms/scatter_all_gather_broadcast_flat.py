"""A message holds the whole of x. In the scatter, send each rank its share, or on a tree the
shares of those that it will serve: half of x at most."""
# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# earns: 0.5


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(x, other)
    else:
        dist.recv(x, src)
