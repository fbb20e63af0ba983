"""The embedding is missing: vocab rows of hidden numbers."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (0 if tied_head else vocab) + max_positions
    return layers * block(hidden, glu) + rows * hidden
