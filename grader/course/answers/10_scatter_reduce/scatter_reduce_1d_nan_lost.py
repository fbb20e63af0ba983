"""A nan among the numbers has to give nan. Python's max and min, and comparisons with < and >,
lose it; torch.maximum, torch.minimum, amax and amin keep it."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# Python's max and min keep a nan that comes first, so the order matters.
# or: OWN = "last"
# or: KEEPS = "the new one"
# or: OWN = "last"; KEEPS = "the new one"

OWN = "first"
KEEPS = "the old one"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        if reduce not in ("amax", "amin"):
            out[i] = reduced(numbers, reduce)
            continue
        if OWN == "last":
            numbers = numbers.roll(-int(include_self))
        best, *others = numbers
        for value in others:
            pair = (value, best) if KEEPS == "the new one" else (best, value)
            best = max(pair) if reduce == "amax" else min(pair)
        out[i] = best
    return out
