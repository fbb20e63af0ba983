"""AVG is the sum divided by the number of ranks; the division is missing."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    hand_out(x)
