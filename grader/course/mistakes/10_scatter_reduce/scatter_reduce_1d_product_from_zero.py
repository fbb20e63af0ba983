"""A product that starts at 0 stays 0: start with the first number, or with 1."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in index.unique():
        numbers = list(src[index == i]) + ([input[i]] if include_self else [])
        found = torch.zeros_like(input[i]) if reduce == "prod" else numbers.pop()
        for value in numbers:
            found = COMBINE[reduce](found, value)
        out[i] = found
    count = torch.bincount(index, minlength=len(input)) + int(include_self)
    return divided(out, count) if reduce == "mean" else out
