"""For PRODUCT you sum. Also compare op with dist.ReduceOp.PRODUCT, and multiply there."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, R.SUM if op == R.PRODUCT else op)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x /= dist.get_world_size()
    hand_out(x)
