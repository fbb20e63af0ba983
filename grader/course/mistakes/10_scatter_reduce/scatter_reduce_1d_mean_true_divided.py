"""A mean of integers is an integer here, rounded down. Dividing with / turns it into a
floating-point number: divide with rounding_mode='floor' or //.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_dtype


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value) if count[i] else value
        count[i] += 1
    return out / torch.tensor(count).clamp(min=1) if reduce == "mean" else out
