"""Whole tensors travel round the ring, and every rank sums all of them by itself. Cut x into n
chunks: each chunk is summed on its way round, by the ranks that it passes.
"""
# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5
# A ring all-gather of whole tensors, and a sum in rank order.


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    x.copy_(parts[0])
    for part in parts[1:]:
        combine(op, x, part)
    if op == dist.ReduceOp.AVG:
        x /= n
