"""These integers have more digits than a floating-point number can hold: total / count, mean() and
float() go through one. Stay with integers, and divide with //."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: WAY = "divided in float32"
# or: WAY = "divided by Python"
# or: WAY = "all in float64"

WAY = "divided in float64"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    if reduce == "mean" and not input.is_floating_point():
        out, count = sums(input, index, src, include_self)
        if WAY == "divided by Python":
            pairs = zip(out.tolist(), count.tolist())
            return torch.tensor([x / n // 1 for x, n in pairs]).to(out.dtype)
        mean = (out if WAY == "divided in float32" else out.double()) / count
        return mean.floor().to(out.dtype)
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        wide = WAY == "all in float64" and reduce == "sum" and not input.is_complex()
        out[i] = reduced(numbers.double() if wide else numbers, reduce)
    return out.double().to(out.dtype) if WAY == "all in float64" and not out.is_complex() else out
