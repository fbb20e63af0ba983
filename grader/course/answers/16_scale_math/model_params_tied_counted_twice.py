"""A tied head uses the embedding's matrix, which is counted once."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = 2 * vocab + max_positions
    return layers * block(hidden, glu) + rows * hidden
