"""Whatever op says, you sum: compare op with dist.ReduceOp.MIN and the others."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, R.SUM)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x /= dist.get_world_size()
    hand_out(x)
