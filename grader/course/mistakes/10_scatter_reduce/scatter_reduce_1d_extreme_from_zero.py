"""amax or amin starts at 0, which may be more or less than all the numbers: start with the first
of them.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: FROM_ZERO = ("amax",)
# or: FROM_ZERO = ("amin",)

FROM_ZERO = ("amax", "amin")


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in index.unique():
        numbers = list(src[index == i]) + ([input[i]] if include_self else [])
        best = torch.zeros_like(input[i]) if reduce in FROM_ZERO else numbers.pop()
        for value in numbers:
            best = COMBINE[reduce](best, value)
        out[i] = best
    count = torch.bincount(index, minlength=len(input)) + int(include_self)
    return divided(out, count) if reduce == "mean" else out
