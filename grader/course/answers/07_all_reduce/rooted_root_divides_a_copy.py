"""With AVG the root has the sum, and all others the mean: x = x / n makes a new tensor on the root,
which is sent to the others, and the caller's x stays as it was. Write x /= n.
"""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x = x / dist.get_world_size()
    hand_out(x)
