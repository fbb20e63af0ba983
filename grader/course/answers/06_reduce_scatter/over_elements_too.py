"""One number is left. Reduce over the ranks alone, element by element: of stacked chunks that is
.sum(0), .amax(0) and so on, and .sum() is that of all elements.
"""
# exercise: reduce_scatter
# diagnosis: wrong_shape


def reduce_scatter(chunks, op):
    rank = dist.get_rank()
    stacked = torch.stack([chunks[rank], *arrivals(chunks)])
    if op == R.AVG:
        return stacked.double().mean().to(stacked.dtype)
    return {R.SUM: stacked.sum, R.MIN: stacked.min, R.MAX: stacked.max}[op]()
