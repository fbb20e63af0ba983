"""Every rank has the result. Only dst's x may change; that is what makes a reduce cheaper than an
all-reduce.
"""
# exercise: reduce, tree_reduce
# diagnosis: wrong_value


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() if src == rank else torch.empty_like(x) for src in range(n)]
    requests = []
    for other in range(n):
        if other != rank:
            requests += [dist.isend(parts[rank], other), dist.irecv(parts[other], other)]
    for request in requests:
        request.wait()
    x.copy_(parts[0])
    for part in parts[1:]:
        combine(op, x, part)
    finish(op, x, n)


def tree_reduce(x, dst, op):
    reduce(x, dst, op)
