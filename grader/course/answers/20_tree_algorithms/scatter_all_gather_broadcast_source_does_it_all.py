"""src hands out every share to every rank. Each share should leave src once, and the ranks pass it
on to each other."""
# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# earns: 0.5


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    for share in x.view(-1).tensor_split(n):
        if rank == src:
            for other in range(n):
                if other != src:
                    dist.send(share, other)
        else:
            dist.recv(share, src)
