"""Learned positions are missing: max_positions rows of hidden numbers."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = vocab if tied_head else 2 * vocab
    return layers * block(hidden, glu) + rows * hidden
