"""Not every op has a branch of its own, and one that has none is summed: compare op with MIN, MAX
and PRODUCT in turn."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value
# or: FORGOTTEN = [R.MAX]
# or: FORGOTTEN = [R.MIN, R.MAX]

FORGOTTEN = [R.MIN]


def all_reduce_rooted(x, op):
    collect(x, R.SUM if op in FORGOTTEN else op)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x /= dist.get_world_size()
    hand_out(x)
