"""The ranks that stood aside still have what they began with: send them the result at the end."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value
# or: ASIDE = "the first of each pair"
# or: ASIDE = "the second of each pair"

ASIDE = "the last"


def tell(x, op, aside):
    pass
