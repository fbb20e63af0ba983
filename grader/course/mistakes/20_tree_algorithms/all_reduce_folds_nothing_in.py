"""The x of the ranks beyond the largest power of two is missing from the result. They have to give
it to another rank before the exchanges begin."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value
# or: ASIDE = "the first of each pair"
# or: ASIDE = "the second of each pair"

ASIDE = "the last"


def fold(x, op, aside):
    pass
