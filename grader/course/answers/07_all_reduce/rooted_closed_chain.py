"""Every rank first waits for its left neighbour, so nobody ever begins. One rank has to send
without having received: let a chain begin at rank 0, and do not close it into a ring."""
# exercise: all_reduce_rooted
# diagnosis: deadlock


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    buffer = torch.empty_like(x)
    dist.recv(buffer, (rank - 1) % n)
    combine(op, x, buffer)
    dist.send(x, (rank + 1) % n)
