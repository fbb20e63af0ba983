"""AVG is the sum divided by the number of ranks, and this is the sum: nothing divides it, or what
is divided is thrown away (x = x / n makes a new tensor, x /= n does not)."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    hand_out(x)
