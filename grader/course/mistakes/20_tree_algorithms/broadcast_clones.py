"""x is unchanged on every rank, although messages were exchanged. Receive into views of x:
x.view(-1).tensor_split(...) gives some, clone() and cat() make new tensors."""
# exercise: pipelined_broadcast, scatter_all_gather_broadcast
# diagnosis: wrong_value


def pieces_of(x, pieces):
    return x.clone().view(-1).tensor_split(max(1, min(pieces, x.numel())))


def shares_of(x, n):
    return x.clone().view(-1).tensor_split(n)
