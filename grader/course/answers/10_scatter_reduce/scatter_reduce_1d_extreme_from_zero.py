"""amax or amin starts at 0, or close to it, as at finfo.tiny, the smallest positive number. That
may be more or less than all the numbers: start with the first of them."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: FROM_ZERO, KINDS, WITH_SELF = ("amax",), "all", True
# or: FROM_ZERO, KINDS, WITH_SELF = ("amin",), "all", True
# or: FROM_ZERO, KINDS, WITH_SELF = ("amax",), "floats", True
# or: FROM_ZERO, KINDS, WITH_SELF = ("amax",), "all", False
# or: FROM_ZERO, KINDS, WITH_SELF = ("amin",), "all", False
# or: FROM_ZERO, KINDS, WITH_SELF = ("amax", "amin"), "all", False

FROM_ZERO, KINDS, WITH_SELF = ("amax", "amin"), "all", True


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        kind = KINDS == "all" or input.is_floating_point()
        if reduce in FROM_ZERO and kind and (WITH_SELF or not include_self):
            numbers = torch.cat([torch.zeros_like(numbers[:1]), numbers])
        out[i] = reduced(numbers, reduce)
    return out
