"""Your own chunk was combined with zeros: you read the buffer too early, before wait(), or you
combine another tensor than the one that you received into."""
# exercise: reduce_scatter, ring_reduce_scatter
# diagnosis: wrong_value
# What is read too early may hold anything; this holds zeros for sure.


def reduce_scatter(chunks, op):
    total = chunks[dist.get_rank()].clone()
    for came in arrivals(chunks):
        total = merge(op, total, torch.zeros_like(came))
    return finished(total, op)


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank - 1].clone()
    for s in range(2, n + 1):
        came = swap(partial, (rank + 1) % n, (rank - 1) % n)
        partial = merge(op, torch.zeros_like(came), chunks[(rank - s) % n])
    return finished(partial, op)
