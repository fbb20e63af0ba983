"""Every rank sends its x to each of the others: n − 1 messages. What it has combined so far is
worth more than its own x alone: pass that on, and log₂ n messages will do."""
# exercise: recursive_doubling_all_reduce
# diagnosis: too_many_rounds
# earns: 0.5
# or: AT_ONCE = True

AT_ONCE = False


def recursive_doubling_all_reduce(x, op):
    """Each rank collects every x, and adds them up in rank order."""
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    others = [(rank + k) % n for k in range(1, n)]
    if AT_ONCE:
        requests = [dist.isend(parts[rank], other) for other in others]
        requests += [dist.irecv(parts[other], other) for other in others]
        for request in requests:
            request.wait()
    else:
        for k in range(1, n):
            request = dist.isend(parts[rank], (rank + k) % n)
            dist.recv(parts[(rank - k) % n], (rank - k) % n)
            request.wait()
    x.copy_(parts[0])
    for part in parts[1:]:
        combine(op, x, part)
    divide(op, x, n)
