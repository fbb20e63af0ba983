"""The blocks are missing."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    return ((vocab if tied_head else 2 * vocab) + max_positions) * hidden
