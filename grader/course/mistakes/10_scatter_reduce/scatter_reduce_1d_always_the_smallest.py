"""amax gives the smallest number: take torch.maximum there."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    combine = COMBINE["amin" if reduce == "amax" else reduce]
    out = input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = combine(out[i], value) if count[i] else value
        count[i] += 1
    return divided(out, count) if reduce == "mean" else out
