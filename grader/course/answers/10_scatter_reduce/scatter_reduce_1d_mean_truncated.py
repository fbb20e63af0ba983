"""A mean of integers is rounded down, towards minus infinity: -7/2 gives -4. Converting to integers
cuts towards zero, and round() goes to the nearest: torch.div(total, count, rounding_mode='floor')
or Python's // do what torch does."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: WAY = "in float64"
# or: WAY = "exactly"
# or: WAY = "to the nearest"
# or: WAY = "to the nearest, in float64"

WAY = "in float32"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    if reduce == "mean" and not input.is_floating_point():
        out, count = sums(input, index, src, include_self)
        if WAY == "exactly":
            return torch.div(out, count, rounding_mode="trunc").to(out.dtype)
        mean = (out.double() if WAY.endswith("float64") else out) / count
        return (mean.round() if WAY.startswith("to the nearest") else mean).to(out.dtype)
    out = input.clone()
    for i in index.unique():
        out[i] = reduced(numbers_for(i, input, index, src, include_self), reduce)
    return out
