"""x has rows and columns here, and your shares are rows, which cannot be shared out evenly among
more ranks. Cut elements: x.view(-1).tensor_split(n)."""
# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# earns: 0.5


def shares_of(x, n):
    return x.tensor_split(n)
