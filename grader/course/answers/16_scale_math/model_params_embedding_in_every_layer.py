"""Embedding and head are there once in the model, not in every layer."""
# exercise: model_params
# diagnosis: wrong_value


def model_params(hidden, layers, vocab, glu, tied_head, max_positions=0):
    rows = (vocab if tied_head else 2 * vocab) + max_positions
    return layers * (block(hidden, glu) + rows * hidden)
