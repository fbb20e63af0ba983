"""Only a mean of integers is rounded down; one of floating-point numbers is not."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: PLACES = "those that index names"

PLACES = "all"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    if reduce == "mean":
        out, count = sums(input, index, src, include_self)
        found = (out // count).to(out.dtype)
        return found if PLACES == "all" else input.index_put((index,), found[index])
    out = input.clone()
    for i in index.unique():
        out[i] = reduced(numbers_for(i, input, index, src, include_self), reduce)
    return out
