"""The second phase takes the exchanges in the same order as the first. A share that is finished
must grow: the last exchange comes first, and the largest part last."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True
# or: HALVES = "len // 2"
# or: FAR = True; HALVES = "len // 2"

FAR = False
HALVES = "tensor_split"


def gather(op, other_at, done):
    for step, kept, given in done:
        exchange(kept, given, other_at(step))
