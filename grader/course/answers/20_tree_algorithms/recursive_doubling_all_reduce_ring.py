"""Every message goes to the same side, so that is a ring. Its number of rounds grows with n. Here
a rank exchanges with another partner in each round, at the distances 1, 2, 4, …"""
# exercise: recursive_doubling_all_reduce
# diagnosis: too_many_rounds
# alike: messages
# earns: 0.5

SIDE = 1


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank] = x.clone()
    for s in range(n - 1):
        came = (rank - SIDE * (s + 1)) % n
        request = dist.isend(parts[(rank - SIDE * s) % n], (rank + SIDE) % n)
        dist.recv(parts[came], (rank - SIDE) % n)
        request.wait()
    x.copy_(parts[0])
    for part in parts[1:]:
        combine(op, x, part)
    divide(op, x, n)
