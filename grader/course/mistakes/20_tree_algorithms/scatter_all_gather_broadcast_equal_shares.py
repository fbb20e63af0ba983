"""The last elements do not arrive: the length is not divisible by n, and shares of equal size
leave some over. x.view(-1).tensor_split(n) leaves none."""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value


def shares_of(x, n):
    size = x.numel() // n
    return x.view(-1)[: n * size].tensor_split(n)
