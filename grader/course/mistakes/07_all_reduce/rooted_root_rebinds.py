"""Every rank but the root ends with the result. The root has sent it, but its own x is as it was.
Combine into x itself (`x = x + buffer` makes a new tensor, `x += buffer` does not), or write the
result back at the end, with x.copy_(...)."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    total = x.clone()
    collect(total, op)
    if op == R.AVG:
        total /= dist.get_world_size()
    hand_out(total if dist.get_rank() == root_and_others()[0] else x)
