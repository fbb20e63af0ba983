"""chunk(k) may give fewer than k pieces, and here it did: use tensor_split(k), which always gives
k."""
# exercise: pipelined_broadcast
# diagnosis: too_few_messages


def pieces_of(x, pieces):
    return x.view(-1).chunk(max(1, min(pieces, x.numel())))
