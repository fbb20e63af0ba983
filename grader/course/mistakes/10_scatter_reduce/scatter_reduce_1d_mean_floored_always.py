"""Only a mean of integers is rounded down; one of floating-point numbers is not."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value) if count[i] else value
        count[i] += 1
    return (out // torch.tensor(count).clamp(min=1)).to(out.dtype) if reduce == "mean" else out
