"""The last elements do not arrive: the length is not divisible by the number of pieces, and pieces
of equal size leave some over. x.view(-1).tensor_split(k) leaves none."""
# exercise: pipelined_broadcast
# diagnosis: wrong_value


def pieces_of(x, pieces):
    k = max(1, min(pieces, x.numel()))
    size = x.numel() // k
    return [x.view(-1)[i * size : (i + 1) * size] for i in range(k)]
