"""There are fewer elements than pieces here, and some messages are empty. Send at most one piece
for each element: k = max(1, min(pieces, x.numel()))."""
# exercise: pipelined_broadcast
# diagnosis: too_many_messages


def pieces_of(x, pieces):
    return x.view(-1).tensor_split(pieces)
