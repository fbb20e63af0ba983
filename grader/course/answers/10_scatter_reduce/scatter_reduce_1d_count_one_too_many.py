"""With include_self=False the mean is divided by one too many: what input has there was not added,
so it is not counted."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        if reduce == "mean" and not include_self:
            out[i] = divided(reduced(numbers, "sum"), len(numbers) + 1)
        else:
            out[i] = reduced(numbers, reduce)
    return out
