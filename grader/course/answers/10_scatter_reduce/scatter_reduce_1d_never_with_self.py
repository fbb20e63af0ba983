"""With include_self=True, what input has at a place counts as one more number."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, False)
        out[i] = reduced(numbers, reduce)
    return out
