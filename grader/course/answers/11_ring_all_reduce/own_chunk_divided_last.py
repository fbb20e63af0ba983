"""With AVG each rank has divided its own chunk alone, and the others are sums: it divides after the
chunks have gone round. Divide a chunk before the second phase hands it out, or all of x at the end.
"""
# exercise: ring_all_reduce
# diagnosis: wrong_value
# or: OWN = 1

OWN = 0


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = cut(x, n)
    send = rank - 1 + OWN
    for step in range(2 * (n - 1)):
        came = torch.empty_like(chunks[(send - 1) % n])
        request = dist.isend(chunks[send % n], (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        send -= 1
        if step < n - 1:
            combine(op, chunks[send % n], came)
        else:
            chunks[send % n].copy_(came)
    if op == dist.ReduceOp.AVG:
        chunks[(rank + OWN) % n].div_(n)
