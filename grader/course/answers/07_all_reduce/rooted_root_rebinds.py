"""One rank still holds its own x, and every other one has the result. Is it the root, with the
result in another tensor? Combine into x itself (`x = x + buffer` makes a new tensor, `x += buffer`
does not), or write it back with x.copy_(...). If it is another rank, is it left out when the result
is handed out?"""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    total = x.clone()
    collect(total, op)
    if op == R.AVG:
        total /= dist.get_world_size()
    hand_out(total if dist.get_rank() == root_and_others()[0] else x)
