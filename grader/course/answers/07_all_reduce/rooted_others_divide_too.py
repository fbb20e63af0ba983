"""The other ranks divide once more, although the root sends them the average: the division belongs
to the root alone."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    n, root = dist.get_world_size(), root_and_others()[0]
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root:
        x /= n
    hand_out(x)
    if op == R.AVG and dist.get_rank() != root:
        x /= n
