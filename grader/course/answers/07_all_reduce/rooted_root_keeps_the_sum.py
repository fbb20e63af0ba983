"""With AVG the root still holds the sum, and the other ranks the mean. Divide on the root, before it
sends the result, and in place: x /= n. A line x = x / n makes a new tensor, and the caller's x stays
as it was.
"""
# exercise: all_reduce_rooted
# diagnosis: wrong_value
# or: WHERE = "on the root, in a new tensor"
# or: ROOT = -1
# or: ROOT = -1; WHERE = "on the root, in a new tensor"

WHERE = "on the others"
ROOT = 0


def all_reduce_rooted(x, op):
    n, is_root = dist.get_world_size(), dist.get_rank() == root_and_others()[0]
    collect(x, op)
    if op == R.AVG and is_root and WHERE != "on the others":
        x = x / n
    hand_out(x)
    if op == R.AVG and not is_root and WHERE == "on the others":
        x /= n
