"""The mean is not divided by how many numbers were added."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        out[i] = reduced(numbers, "sum" if reduce == "mean" else reduce)
    return out
