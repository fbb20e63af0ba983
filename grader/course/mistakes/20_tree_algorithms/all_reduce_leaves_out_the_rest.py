"""The ranks beyond the largest power of two take no part: their x is missing from the result, and
they do not get it. They have to give it to another rank before the exchanges begin, and are told
at the end."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value


def fold(x, op, aside):
    pass


def tell(x, op, aside):
    pass
