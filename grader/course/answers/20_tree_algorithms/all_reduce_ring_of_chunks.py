"""Every message goes to the same side, so that is a ring. Its number of rounds grows with n. Here
a rank exchanges with another partner in each round, at the distances 1, 2, 4, …"""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: too_many_rounds
# alike: messages
# earns: 0.5


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = x.view(-1).tensor_split(n)
    for s in range(2 * (n - 1)):
        out, into = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(into)
        request = dist.isend(out, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        if s < n - 1:
            combine(op, into, came)
        else:
            into.copy_(came)
    divide(op, x, n)


def halving_doubling_all_reduce(x, op):
    recursive_doubling_all_reduce(x, op)
