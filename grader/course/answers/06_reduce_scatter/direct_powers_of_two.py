"""rank ^ step finds a partner for every rank only if the number of ranks is a power of two. With 3
ranks, 1 ^ 2 is 3, and there is no rank 3. Send to (rank + step) % n and receive from (rank − step)
% n, which exist for every n."""
# exercise: reduce_scatter
# diagnosis: exception


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    for step in range(1, n):
        partner = rank ^ step
        total = merge(op, total, swap(chunks[partner], partner, partner))
    return finished(total, op)
