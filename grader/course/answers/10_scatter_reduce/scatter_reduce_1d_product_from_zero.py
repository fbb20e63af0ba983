"""A product that starts at 0 stays 0: start with the first number, or with 1."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        if reduce == "prod":
            numbers = torch.cat([torch.zeros_like(numbers[:1]), numbers])
        out[i] = reduced(numbers, reduce)
    return out
