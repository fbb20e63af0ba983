"""The ranks that stand aside get the sum and not the average: it is handed to them before it is
divided by n. Divide first, and hand on what came of it.
"""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def handed_on_first(right):
    """Divide on the ranks of the power of two when the sum has left them."""

    def all_reduce(x, op):
        n = dist.get_world_size()
        right(x, dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op)
        if dist.get_rank() < 1 << (n.bit_length() - 1):
            divide(op, x, n)

    return all_reduce


recursive_doubling_all_reduce = handed_on_first(recursive_doubling_all_reduce)
halving_doubling_all_reduce = handed_on_first(halving_doubling_all_reduce)
