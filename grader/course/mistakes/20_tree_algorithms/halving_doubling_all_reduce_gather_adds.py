"""The second phase combines as well. What comes there is finished: it replaces what is there."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True
# or: HALVES = "len // 2"
# or: FAR = True; HALVES = "len // 2"

FAR = False
HALVES = "tensor_split"


def gather(op, other_at, done):
    for step, kept, given in reversed(done):
        came = torch.empty_like(given)
        exchange(kept, came, other_at(step))
        combine(op, given, came)
