"""amax and amin are swapped."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        out[i] = reduced(numbers, {"amax": "amin", "amin": "amax"}.get(reduce, reduce))
    return out
