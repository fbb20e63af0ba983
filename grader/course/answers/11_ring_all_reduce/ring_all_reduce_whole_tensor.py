"""Whole tensors are sent. The point of the ring is that a message holds one chunk, 1/n of x:
cut x with tensor_split(n).
"""
# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5
# A sum that grows on its way round, and goes round once more: whole tensors.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    left, right = (rank - 1) % n, (rank + 1) % n
    if rank > 0:
        came = torch.empty_like(x)
        dist.recv(came, left)
        combine(op, x, came)
    dist.send(x, right) if rank < n - 1 else None
    if rank == n - 1 and op == dist.ReduceOp.AVG:
        x /= n
    if rank < n - 1:
        dist.recv(x, left)
    if rank != n - 2:
        dist.send(x, right)
