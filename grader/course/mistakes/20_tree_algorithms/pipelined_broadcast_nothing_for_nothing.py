"""Here x has no elements, and each link still carries one piece, an empty one: leave no message
out."""
# exercise: pipelined_broadcast
# diagnosis: too_few_messages


def pieces_of(x, pieces):
    k = min(pieces, x.numel())
    return x.view(-1).tensor_split(k) if k else []
