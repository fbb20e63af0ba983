"""A head that is not tied has a matrix of its own, vocab · hidden once more. Tied means that there
is one matrix for both."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = vocab + max_positions
    return layers * block(hidden, glu) + rows * hidden
