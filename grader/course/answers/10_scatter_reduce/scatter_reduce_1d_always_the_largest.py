"""amin gives the largest number: take torch.minimum there."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        out[i] = reduced(numbers, "amax" if reduce == "amin" else reduce)
    return out
