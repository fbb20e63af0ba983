"""x is as it was on every rank. If the result is in another tensor, write it into x: `x = x +
buffer` makes a new tensor that the caller never sees; `x += buffer` and x.copy_(buffer) write into
x."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    x = x.clone()
    collect(x, op)
    if op == R.AVG:
        x = x / dist.get_world_size()
    hand_out(x)
