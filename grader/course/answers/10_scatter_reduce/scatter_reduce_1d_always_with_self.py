"""With include_self=False, what input has at a place that index names does not count: the first
number of src replaces it."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, True)
        out[i] = reduced(numbers, reduce)
    return out
