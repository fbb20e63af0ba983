"""It is the other way round. If the head is tied, one matrix serves both and is counted once; a
head of its own is a second matrix."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (2 * vocab if tied_head else vocab) + max_positions
    return layers * block(hidden, glu) + rows * hidden
