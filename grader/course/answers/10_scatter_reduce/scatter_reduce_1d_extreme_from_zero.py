"""amax or amin starts at 0, or close to it, as at finfo.tiny, the smallest positive number. That
may be more or less than all the numbers: start with the first of them."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: FROM_ZERO, KINDS = ("amax",), "all"
# or: FROM_ZERO, KINDS = ("amin",), "all"
# or: FROM_ZERO, KINDS = ("amax",), "floats"

FROM_ZERO, KINDS = ("amax", "amin"), "all"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        if reduce in FROM_ZERO and (KINDS == "all" or input.is_floating_point()):
            numbers = torch.cat([torch.zeros_like(numbers[:1]), numbers])
        out[i] = reduced(numbers, reduce)
    return out
