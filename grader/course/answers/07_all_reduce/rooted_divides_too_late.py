"""The root divides after it has sent the result. Finish the result first, then broadcast it."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    hand_out(x)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x /= dist.get_world_size()
