"""Some ranks end with a partial result: the sum passes them by, from rank to rank, and when it is
finished it is not handed out to them. Combine the x of all ranks first, and then broadcast."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    buffer = torch.empty_like(x)
    if rank:
        dist.recv(buffer, rank - 1)
        combine(op, x, buffer)
    dist.send(x, (rank + 1) % n)
    if rank == 0:
        dist.recv(x, n - 1)
    if op == R.AVG:
        x /= n
