"""One rank has the result, and the others have what they began with. The second half is missing,
which is the broadcast."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root_and_others()[0]:
        x /= dist.get_world_size()
