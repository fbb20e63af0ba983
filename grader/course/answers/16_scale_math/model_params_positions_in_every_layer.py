"""The positions are counted in every layer. A model has one table of them, beside the embedding."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = vocab if tied_head else 2 * vocab
    return layers * (block(hidden, glu) + max_positions * hidden) + rows * hidden
