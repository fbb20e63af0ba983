"""These integers have more digits than a floating-point number can hold: total / count, mean() and
float() go through one. Stay with integers, and divide with //.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: WAY = "divided in float32"
# or: WAY = "divided by Python"
# or: WAY = "all in float64"

WAY = "divided in float64"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    whole = not (input.is_floating_point() or input.is_complex())
    wide = WAY == "all in float64" and whole
    out = input.double() if wide else input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value) if count[i] else value
        count[i] += 1
    if reduce != "mean":
        return out.to(input.dtype)
    if WAY == "divided by Python" and whole:
        pairs = zip(out.tolist(), count)
        return torch.tensor([int(x / max(n, 1) // 1) for x, n in pairs]).to(input.dtype)
    mean = (out.double() if WAY == "divided in float64" else out) / torch.tensor(count).clamp(min=1)
    return (mean.floor() if whole else mean).to(input.dtype)
