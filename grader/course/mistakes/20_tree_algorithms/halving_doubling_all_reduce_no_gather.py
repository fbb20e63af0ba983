"""Only the first phase is there: each rank has the whole sum of one share, and parts elsewhere.
The all-gather takes the same exchanges backwards."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True
# or: HALVES = "len // 2"
# or: FAR = True; HALVES = "len // 2"

FAR = False
HALVES = "tensor_split"


def gather(op, other_at, done):
    pass
