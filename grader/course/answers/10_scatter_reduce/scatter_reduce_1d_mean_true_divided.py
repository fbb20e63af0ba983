"""A mean of integers is an integer here, rounded down. Dividing with / turns it into a
floating-point number: divide with rounding_mode='floor' or //."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_dtype


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        out[i] = reduced(numbers, reduce)
    if reduce == "mean":
        out, count = sums(input, index, src, include_self)
        return out / count
    return out
