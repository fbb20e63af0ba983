"""AVG is the sum divided by the number of ranks, the root included. Here it is divided by n − 1.
"""
# exercise: all_reduce_rooted
# diagnosis: wrong_value
# or: LEAST = 1

LEAST = 2


def all_reduce_rooted(x, op):
    n = dist.get_world_size()
    collect(x, op)
    if op == R.AVG and n >= LEAST and dist.get_rank() == root_and_others()[0]:
        x /= n - 1
    hand_out(x)
