"""amax or amin starts at 0, which may be more or less than all the numbers: start with the first
of them."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: FROM_ZERO = ("amax",)
# or: FROM_ZERO = ("amin",)

FROM_ZERO = ("amax", "amin")


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        if reduce in FROM_ZERO:
            numbers = torch.cat([torch.zeros_like(numbers[:1]), numbers])
        out[i] = reduced(numbers, reduce)
    return out
